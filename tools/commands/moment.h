// SPDX-License-Identifier: MIT
/*
 * Moment: which thread of a process may be stopped to execute system calls of ours,
 * and where.
 *
 * A process with several threads can be stopped anywhere: what its threads hold
 * locked they unlock later, while ours wait. One with a single thread may be in a
 * part of the C library that takes no locks as long as there is one thread. So it
 * must be outside.
 */
#ifndef COMMANDS_MOMENT_H
#define COMMANDS_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target.h"
#include "tracee.h"

struct moment {
	const struct target *target;
	const struct tracee *tracee; /* stopped */
	bool is_single;              /* the only thread */
	uint64_t signal_return; /* what signal handlers return to, 0: none */
};

/* What becomes of a system call that a thread is in when it is stopped and goes on:
 * the first ones suit best. */
enum thread_rank {
	THREAD_GOES_ON,           /* as if nothing had been */
	THREAD_RUNS,              /* there is none, or nothing is known */
	THREAD_GOES_ON_WITH_REST, /* restarted, with the rest of its timeout in ms */
	THREAD_BEGINS_ANEW,       /* restarted with its whole timeout */
	THREAD_RANKS,
};

/* The best thread whose rank is not below least; *count: of all. 0: none. Waits a
 * little for one that does not begin anew. */
pid_t moment_choose_thread(pid_t pid, enum thread_rank least, size_t *count);

bool moment_is_good(const struct moment *moment);

#endif
