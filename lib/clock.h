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
#include <sys/types.h>
#include <time.h>

#include "error.h"

#define SAMPLE_CLOCK_SIGNAL SIGPROF

enum sample_clock_kind {
	SAMPLE_CLOCK_PERF,
	SAMPLE_CLOCK_THREAD_TIMER,
	SAMPLE_CLOCK_PROCESS_TIMER,
};

struct sample_clock {
	enum sample_clock_kind kind;
	uint64_t interval_ns;
	int fd;        /* SAMPLE_CLOCK_PERF, else -1 */
	timer_t timer; /* SAMPLE_CLOCK_THREAD_TIMER */
};

/* For the thread thread_id of this process. Does not tick before
 * sample_clock_start(). On failure names every way tried and why it failed. */
int sample_clock_open(struct sample_clock *clock, pid_t thread_id,
                      uint64_t interval_ns, struct error *error);
int sample_clock_start(struct sample_clock *clock, struct error *error);
void sample_clock_stop(struct sample_clock *clock);
void sample_clock_close(struct sample_clock *clock);

/* "perf task clock", "thread CPU timer", "process timer". */
const char *sample_clock_name(const struct sample_clock *clock);

/* Did this clock send the signal? Async-signal-safe. */
bool sample_clock_sent(const struct sample_clock *clock, const siginfo_t *info);

#endif
