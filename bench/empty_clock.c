// SPDX-License-Identifier: MIT
/*
 * The clock of a profile with a handler that does nothing: what any profiler costs
 * that signals. For slow-down.lua.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int empty_clock_start(uint64_t interval_ns);
EXPORTED unsigned long empty_clock_stop(void);

static struct sample_clock sample_clock;
static struct sigaction previous;
static volatile unsigned long signal_count;

static void count_signal(int number)
{
	(void)number;
	signal_count++;
}

/* To the calling thread. 0, or -1 where no clock can be had. */
int empty_clock_start(uint64_t interval_ns)
{
	struct sigaction action = {.sa_handler = count_signal,
	                           .sa_flags = SA_RESTART};
	pid_t thread_id = (pid_t)syscall(SYS_gettid);
	struct error error;

	signal_count = 0;
	sigaction(sample_clock_signal(), &action, &previous);
	if (sample_clock_open(&sample_clock, SAMPLE_CLOCK_PERF, thread_id,
	                      interval_ns, &error) < 0)
		return -1;
	return sample_clock_start(&sample_clock, &error);
}

/* Returns how many signals came. */
unsigned long empty_clock_stop(void)
{
	sample_clock_stop(&sample_clock);
	sample_clock_close(&sample_clock);
	sigaction(sample_clock_signal(), &previous, NULL);
	return signal_count;
}
