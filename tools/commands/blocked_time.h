// SPDX-License-Identifier: MIT
/*
 * Blocked time: since when is a thread blocked that is about to be stopped? By the
 * scheduler's own account of it, which is read before and afterwards: a thread that
 * has run in between may be in another call. Nothing is known where the kernel has
 * no /proc/PID/sched.
 */
#ifndef COMMANDS_BLOCKED_TIME_H
#define COMMANDS_BLOCKED_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A system call, as /proc tells it. */
struct blocked_call {
	long number; /* -1: the thread runs, or nothing is known */
	uint64_t arguments[6];
};
struct blocked_call blocked_call_read(pid_t pid, pid_t thread_id);

struct blocked_time {
	struct blocked_call call;
	bool is_known;
	int cpu;                /* that it was on */
	uint64_t since_ns;      /* of that CPU's clock */
	unsigned long switches; /* how often it has given up a CPU */
	uint64_t start_ns;      /* CLOCK_MONOTONIC */
};

/* Before the thread is stopped. */
void blocked_time_note(struct blocked_time *time, pid_t pid, pid_t thread_id);

/* When it is stopped in that call: start_ns, never too early, unless is_known is
 * false. */
void blocked_time_settle(struct blocked_time *time, pid_t pid, pid_t thread_id,
                         const struct blocked_call *call);

#endif
