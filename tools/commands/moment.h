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

/* The best thread whose rank, 0 to 2, is not below least; *count: of all. 0: none.
 */
pid_t moment_choose_thread(pid_t pid, int least, size_t *count);

bool moment_is_good(const struct moment *moment);

#endif
