// SPDX-License-Identifier: MIT
/*
 * Cost of a sample: time inside the signal handler, by the CPU's time stamp
 * counter read around the product's own handler.
 *
 * usage: handler_cost SCRIPT INTERVAL_US SECONDS [off]
 *
 * Runs the function that SCRIPT returns, again and again, with the JIT on or
 * off, sampled in mode C with perf's names off. The ring is drained by a
 * thread, as in the product, but nothing is written.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "clock.h"
#include "ring_sig.h"
#include "sampler_sig.h"
#include "vm/vm.h"

#define COSTS_MAX (1 << 22)

static uint32_t costs[COSTS_MAX]; /* in ticks */
static size_t cost_count;
static _Atomic bool ending;

static void measure(int signal, siginfo_t *info, void *context)
{
	uint64_t start = __rdtsc();

	sampler_handle_signal(signal, info, context);
	if (cost_count < COSTS_MAX)
		costs[cost_count++] = (uint32_t)(__rdtsc() - start);
}

static void *drain(void *argument)
{
	static const struct timespec pause = {.tv_nsec = 5000000};
	struct ring *ring = argument;

	while (!atomic_load(&ending)) {
		while (ring_peek(ring))
			ring_release(ring);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double ticks_per_ns(void)
{
	double start = seconds(CLOCK_MONOTONIC);
	uint64_t ticks = __rdtsc();

	while (seconds(CLOCK_MONOTONIC) - start < 0.05)
		;
	return (double)(__rdtsc() - ticks) /
	       ((seconds(CLOCK_MONOTONIC) - start) * 1e9);
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "handler_cost: %s: %s\n", what, why);
	exit(1);
}

static void run(lua_State *L, double duration)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + duration;

	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end) {
		lua_pushvalue(L, -1);
		if (lua_pcall(L, 0, 0, 0))
			fail("script", lua_tostring(L, -1));
	}
}

static void report(double scale)
{
	static const double quantiles[] = {0.5, 0.9, 0.99};
	size_t i;

	if (!cost_count)
		fail("no sample", "the script is too short");
	qsort(costs, cost_count, sizeof(costs[0]), compare);
	printf("%zu samples", cost_count);
	for (i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		printf(", %g %%: %.0f ns", quantiles[i] * 100,
		       costs[(size_t)((double)(cost_count - 1) *
		                      quantiles[i])] /
		               scale);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct sampler_options options = {.mode = LUAM_SYSPROF_CALLGRAPH};
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
	lua_State *L = luaL_newstate();
	struct sample_clock clock;
	struct sampler *sampler;
	struct error error;
	pthread_t drainer;
	struct vm vm;

	if (argc < 4)
		fail("usage", "handler_cost SCRIPT INTERVAL_US SECONDS [off]");
	luaL_openlibs(L);
	if (argc > 4 && luaL_dostring(L, "jit.off()"))
		fail("jit.off", lua_tostring(L, -1));
	if (luaL_dofile(L, argv[1]))
		fail(argv[1], lua_tostring(L, -1));
	if (vm_open(&vm, L, &error) ||
	    sample_clock_open(&clock, SAMPLE_CLOCK_PERF, gettid(),
	                      strtoull(argv[2], NULL, 10) * 1000, &error))
		fail("start", error.text);
	options.vm = &vm;
	options.clock = &clock;
	sampler = sampler_open(&options, &error);
	if (!sampler)
		fail("start", error.text);
	pthread_create(&drainer, NULL, drain, sampler_ring(sampler));
	sampler_attach(sampler);
	action.sa_sigaction = measure;
	sigaction(sample_clock_signal(), &action, NULL);
	sample_clock_start(&clock, &error);
	run(L, atof(argv[3]));
	sample_clock_stop(&clock);
	atomic_store(&ending, true);
	pthread_join(drainer, NULL);
	printf("%s, %s us, %s: ", argv[1], argv[2], sample_clock_name(&clock));
	report(ticks_per_ns());
	return 0;
}
