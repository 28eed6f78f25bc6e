// SPDX-License-Identifier: MIT
/*
 * What it costs to deliver a signal by each kind of clock: short blocks of the same
 * loop, with signals to an empty handler and without, by turns.
 *
 * usage: delivery [INTERVAL_US [ROUNDS]]
 *
 * The median over the rounds counts, since the machine may be busy with other
 * things. Prints the loss in percent, microseconds a signal, and how many of the
 * signals that were asked for have come; for the helper thread its own CPU time, too.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define BLOCK_LOOPS 60000000u
#define ROUNDS_MAX  1000

enum way {
	WAY_PERF,
	WAY_THREAD_TIMER,
	WAY_WALL_TIMER,
	WAY_HELPER,
	WAY_COUNT,
};

static const struct {
	const char *name;
	enum sample_clock_kind kind; /* but for the helper thread */
} ways[WAY_COUNT] = {
	[WAY_PERF] = {"perf task clock", SAMPLE_CLOCK_PERF},
	[WAY_THREAD_TIMER] = {"thread CPU timer", SAMPLE_CLOCK_THREAD_TIMER},
	[WAY_WALL_TIMER] = {"wall clock timer", SAMPLE_CLOCK_WALL_TIMER},
	[WAY_HELPER] = {.name = "helper thread"},
};

static _Atomic unsigned long signal_count;
static _Atomic bool helper_ends;
static double helper_seconds;
static pid_t target;
static uint64_t interval_ns;

static void count_signal(int number)
{
	(void)number;
	signal_count++;
}

static double clock_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Seconds that this thread had a CPU: those by the clock without those in line for
 * one. Its CPU time would leave out interrupts, which are the most of it. */
static double thread_seconds(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long in_line_ns;

	if (!file || fscanf(file, "%*u %llu", &in_line_ns) != 1) {
		perror("/proc/thread-self/schedstat");
		exit(1);
	}
	fclose(file);
	return clock_seconds(CLOCK_MONOTONIC) - (double)in_line_ns / 1e9;
}

static double time_block(void)
{
	double start = thread_seconds();
	volatile unsigned x = 1;

	for (unsigned i = 0; i < BLOCK_LOOPS; i++)
		x = x * 3 + i;
	return thread_seconds() - start;
}

/* Sleeps for an interval, and signals if the target has run meanwhile. */
static void *help(void *argument)
{
	struct timespec pause = {.tv_nsec = (long)interval_ns};
	struct timespec now, before = {0};
	clockid_t clock;

	prctl(PR_SET_TIMERSLACK, 1);
	pthread_getcpuclockid(*(pthread_t *)argument, &clock);
	while (!helper_ends) {
		nanosleep(&pause, NULL);
		clock_gettime(clock, &now);
		if (memcmp(&now, &before, sizeof(now)) == 0)
			continue;
		before = now;
		syscall(SYS_tgkill, getpid(), target, sample_clock_signal());
	}
	helper_seconds += clock_seconds(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static double time_with_helper(void)
{
	pthread_t self = pthread_self(), helper;
	double seconds;

	helper_ends = false;
	if (pthread_create(&helper, NULL, help, &self) != 0)
		exit(1);
	seconds = time_block();
	helper_ends = true;
	pthread_join(helper, NULL);
	return seconds;
}

static double time_signalled(enum way way)
{
	struct sample_clock clock;
	struct error error;
	double seconds;

	if (way == WAY_HELPER)
		return time_with_helper();
	if (sample_clock_open(&clock, ways[way].kind, target, interval_ns,
	                      &error) < 0 ||
	    sample_clock_start(&clock, &error) < 0) {
		fprintf(stderr, "%s: %s\n", ways[way].name, error.text);
		exit(1);
	}
	seconds = time_block();
	sample_clock_stop(&clock);
	sample_clock_close(&clock);
	return seconds;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = count_signal,
	                           .sa_flags = SA_RESTART};
	static double ratios[WAY_COUNT][ROUNDS_MAX];
	unsigned long signals[WAY_COUNT] = {0};
	double seconds[WAY_COUNT] = {0};
	int rounds = argc > 2 ? atoi(argv[2]) : 25;

	interval_ns = strtoull(argc > 1 ? argv[1] : "200", NULL, 10) * 1000;
	if (rounds < 1 || rounds > ROUNDS_MAX || interval_ns == 0)
		return 2;
	target = (pid_t)syscall(SYS_gettid);
	sigaction(sample_clock_signal(), &action, NULL);
	for (int round = 0; round < rounds; round++) {
		for (int way = 0; way < WAY_COUNT; way++) {
			double plain = time_block(), signalled;

			signal_count = 0;
			signalled = time_signalled((enum way)way);
			signals[way] += signal_count;
			seconds[way] += signalled;
			plain = (plain + time_block()) / 2;
			ratios[way][round] = signalled / plain;
		}
	}
	for (int way = 0; way < WAY_COUNT; way++) {
		double loss,
			signals_a_second = (double)signals[way] / seconds[way];

		qsort(ratios[way], (size_t)rounds, sizeof(ratios[way][0]),
		      compare);
		loss = 1 - 1 / ratios[way][rounds / 2];
		printf("%-17s %5.1f %% slower, %5.1f us a signal, %5.1f %% of "
		       "the signals\n",
		       ways[way].name, 100 * (ratios[way][rounds / 2] - 1),
		       1e6 * loss / signals_a_second,
		       100 * signals_a_second * (double)interval_ns / 1e9);
	}
	printf("the helper thread's own: %.1f us a signal\n",
	       1e6 * helper_seconds / (double)signals[WAY_HELPER]);
	return 0;
}
