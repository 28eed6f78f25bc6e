// SPDX-License-Identifier: MIT
/*
 * Sample clock: sends SIGPROF to one thread each interval of its CPU time.
 * Opened, started and stopped outside the handler.
 *
 * In this order, the first that the system allows:
 *   perf task clock   perf_event_open(2); honours 0.1 ms
 *   thread CPU timer  timer_create(2); no faster than the kernel's tick
 *   process timer     setitimer(2) ITIMER_PROF; the same, for the whole process
 */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

#include "error.h"

#define SAMPLE_CLOCK_SIGNAL SIGPROF

enum sample_clock_kind {
	SAMPLE_CLOCK_PERF,
	SAMPLE_CLOCK_THREAD_TIMER,
	SAMPLE_CLOCK_PROCESS_TIMER,
};

/* Shortest interval that the kernel keeps, longest that makes sense. */
#define SAMPLE_INTERVAL_NS_MIN UINT64_C(10000)
#define SAMPLE_INTERVAL_NS_MAX UINT64_C(3600000000000)

struct sample_clock {
	enum sample_clock_kind kind;
	uint64_t interval_ns;
	int fd;         /* SAMPLE_CLOCK_PERF, else -1 */
	bool user_only; /* SAMPLE_CLOCK_PERF: no right to sample system calls */
	timer_t timer;  /* SAMPLE_CLOCK_THREAD_TIMER */
	struct itimerval previous; /* SAMPLE_CLOCK_PROCESS_TIMER: what it
				    * replaced, put back when it stops */
};

/*
 * For the thread thread_id of this process. Tries first_kind and then those
 * after it: production code says SAMPLE_CLOCK_PERF. Does not tick before
 * sample_clock_start(). On failure names every way tried and why it failed.
 */
int sample_clock_open(struct sample_clock *clock,
                      enum sample_clock_kind first_kind, pid_t thread_id,
                      uint64_t interval_ns, struct error *error);
int sample_clock_start(struct sample_clock *clock, struct error *error);

/* Signals sent before may still be pending when these return: the SIGPROF
 * handler must stay until they are drained. */
void sample_clock_stop(struct sample_clock *clock);
void sample_clock_close(struct sample_clock *clock);

/* In the child of a fork: lets go of what the child inherited, without any
 * effect on the parent's clock. */
void sample_clock_abandon(struct sample_clock *clock);

/* "perf task clock", "perf task clock (user code only)", "thread CPU timer",
 * "process timer". */
const char *sample_clock_name(const struct sample_clock *clock);

/* Did this clock send the signal? Async-signal-safe. */
bool sample_clock_sent(const struct sample_clock *clock, const siginfo_t *info);

#endif
