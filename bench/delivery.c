// SPDX-License-Identifier: MIT
/*
 * What it costs to deliver a signal by each kind of clock: a loop of a fixed
 * length, with an empty handler, against the same loop without signals.
 *
 * usage: delivery [INTERVAL_US [ROUNDS]]
 *
 * Rounds of all kinds take turns and the medians count, since the machine may be
 * busy with other things. Prints the loss in percent, microseconds a signal, and
 * how many of the signals that were asked for have come.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define LOOPS      400000000u
#define ROUNDS_MAX 25

enum way {
	WAY_NONE,
	WAY_PERF,
	WAY_TIMER,
	WAY_HELPER,
	WAY_COUNT,
};

static const char *const names[WAY_COUNT] = {
	"none", "perf task clock", "thread CPU timer", "helper thread"};

static _Atomic unsigned long signal_count;
static _Atomic bool helper_ends;
static pid_t target;
static uint64_t interval_ns;

static void count_signal(int number)
{
	(void)number;
	signal_count++;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spin(void)
{
	volatile unsigned x = 1;

	for (unsigned i = 0; i < LOOPS; i++)
		x = x * 3 + i;
}

/* Sleeps for an interval, and signals if the target has run meanwhile. */
static void *help(void *argument)
{
	struct timespec pause = {.tv_nsec = (long)interval_ns};
	struct timespec now, before = {0};
	clockid_t clock;

	pthread_getcpuclockid(*(pthread_t *)argument, &clock);
	while (!helper_ends) {
		nanosleep(&pause, NULL);
		clock_gettime(clock, &now);
		if (memcmp(&now, &before, sizeof(now)) == 0)
			continue;
		before = now;
		syscall(SYS_tgkill, getpid(), target, sample_clock_signal());
	}
	return NULL;
}

static uint64_t run_with_helper(void)
{
	pthread_t self = pthread_self(), helper;
	uint64_t start;

	helper_ends = false;
	if (pthread_create(&helper, NULL, help, &self) != 0)
		exit(1);
	start = cpu_ns();
	spin();
	start = cpu_ns() - start;
	helper_ends = true;
	pthread_join(helper, NULL);
	return start;
}

static uint64_t run(enum way way)
{
	struct sample_clock clock;
	struct error error;
	uint64_t start;

	if (way == WAY_HELPER)
		return run_with_helper();
	if (way != WAY_NONE &&
	    (sample_clock_open(&clock,
	                       way == WAY_PERF ? SAMPLE_CLOCK_PERF
	                                       : SAMPLE_CLOCK_THREAD_TIMER,
	                       target, interval_ns, &error) < 0 ||
	     sample_clock_start(&clock, &error) < 0)) {
		fprintf(stderr, "%s: %s\n", names[way], error.text);
		exit(1);
	}
	start = cpu_ns();
	spin();
	start = cpu_ns() - start;
	if (way != WAY_NONE) {
		sample_clock_stop(&clock);
		sample_clock_close(&clock);
	}
	return start;
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = count_signal,
	                           .sa_flags = SA_RESTART};
	static uint64_t times[WAY_COUNT][ROUNDS_MAX];
	unsigned long signals[WAY_COUNT] = {0};
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	uint64_t none;

	interval_ns = strtoull(argc > 1 ? argv[1] : "200", NULL, 10) * 1000;
	if (rounds < 1 || rounds > ROUNDS_MAX || interval_ns == 0)
		return 2;
	target = (pid_t)syscall(SYS_gettid);
	sigaction(sample_clock_signal(), &action, NULL);
	for (int round = 0; round < rounds; round++) {
		for (int way = 0; way < WAY_COUNT; way++) {
			signal_count = 0;
			times[way][round] = run((enum way)way);
			signals[way] += signal_count;
		}
	}
	for (int way = 0; way < WAY_COUNT; way++)
		qsort(times[way], (size_t)rounds, sizeof(times[way][0]),
		      compare);
	none = times[WAY_NONE][rounds / 2];
	for (int way = 1; way < WAY_COUNT; way++) {
		double median = (double)times[way][rounds / 2];
		double count = (double)signals[way] / rounds;

		printf("%-17s %6.1f %% slower, %5.1f us a signal, %5.1f %% of "
		       "the signals\n",
		       names[way], 100 * (median / (double)none - 1),
		       (median - (double)none) / 1000 / count,
		       100 * count / (median / (double)interval_ns));
	}
	return 0;
}
