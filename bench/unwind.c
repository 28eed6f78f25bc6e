// SPDX-License-Identifier: MIT
/*
 * Cost of a native stack of 20 frames, from the context of a signal: our tables
 * against libunwind and glibc's backtrace(), in one run.
 *
 * usage: unwind [ROUNDS [LIBRARY...]]
 *
 * First loads the libraries, so that the tables have as many objects as those
 * of some server, and tells what building them takes. libunwind is loaded if it is
 * there (Debian package: libunwind8). Times are medians by the CPU's time stamp
 * counter, around each walk; warm: after a walk of the same stack; cold: after 4 MiB
 * of other memory was touched.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <x86intrin.h>

#include "host/unwind_sig.h"
#include "host/unwind_table.h"
#include "load_sig.h"

#define DEPTH          15 /* and those of main, libc and the signal */
#define FRAMES_MAX     64
#define ROUNDS_DEFAULT 20000
#define CACHE_BYTES    (4u << 20)
#define CURSOR_WORDS   128
#define SIGNAL_FRAME   1  /* UNW_INIT_SIGNAL_FRAME */
#define REGISTER_IP    16 /* UNW_X86_64_RIP */

/* libunwind's functions by the names that they have in the library. */
static struct {
	int (*backtrace)(void **addresses, int count);
	int (*begin)(void *cursor, ucontext_t *context, int flags);
	int (*step)(void *cursor);
	int (*get)(void *cursor, int which, uint64_t *value);
} libunwind;

static uint64_t addresses[FRAMES_MAX];
static struct unwind_cache cache;

static int walk_by_tables(ucontext_t *context)
{
	struct cpu_registers registers;
	enum unwind_result result = UNWIND_INTERRUPTED;
	int count = 0;

	cpu_registers_read(&registers, context);
	unwind_cache_begin(&cache);
	while (count < FRAMES_MAX &&
	       (result == UNWIND_CALLER || result == UNWIND_INTERRUPTED)) {
		uint64_t address =
			registers.ip - (result == UNWIND_INTERRUPTED ? 0 : 1);

		addresses[count++] = address;
		result = unwind_step(unwind_cache_find(&cache, address),
		                     &registers);
	}
	unwind_cache_end(&cache);
	return count;
}

static int walk_by_backtrace(ucontext_t *context)
{
	(void)context;
	return backtrace((void **)addresses, FRAMES_MAX);
}

static int walk_by_unw_backtrace(ucontext_t *context)
{
	(void)context;
	return libunwind.backtrace((void **)addresses, FRAMES_MAX);
}

static int walk_by_unw_step(ucontext_t *context)
{
	uint64_t cursor[CURSOR_WORDS];
	int count = 0;

	if (libunwind.begin(cursor, context, SIGNAL_FRAME) < 0)
		return 0;
	do
		libunwind.get(cursor, REGISTER_IP, &addresses[count++]);
	while (count < FRAMES_MAX && libunwind.step(cursor) > 0);
	return count;
}

static struct way {
	const char *name;
	int (*walk)(ucontext_t *context);
	bool available;
	int frame_count;
	uint32_t *ticks[2]; /* warm, cold */
} ways[] = {
	{.name = "tables", .walk = walk_by_tables, .available = true},
	{.name = "libunwind unw_backtrace", .walk = walk_by_unw_backtrace},
	{.name = "libunwind unw_step", .walk = walk_by_unw_step},
	{.name = "glibc backtrace",
         .walk = walk_by_backtrace,
         .available = true},
};

#define WAY_COUNT (sizeof(ways) / sizeof(ways[0]))

static volatile uint8_t other_memory[CACHE_BYTES];
static int round_number;

static void touch_other_memory(void)
{
	size_t i;

	for (i = 0; i < sizeof(other_memory); i += 64)
		other_memory[i]++;
}

static uint32_t time_walk(struct way *way, ucontext_t *context)
{
	uint64_t start = __rdtsc();

	way->frame_count = way->walk(context);
	return (uint32_t)(__rdtsc() - start);
}

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	size_t i;

	(void)signal;
	(void)info;
	for (i = 0; i < WAY_COUNT; i++) {
		if (!ways[i].available)
			continue;
		if (round_number % 20 == 0) {
			touch_other_memory();
			ways[i].ticks[1][round_number / 20] =
				time_walk(&ways[i], context);
		}
		ways[i].walk(context);
		ways[i].ticks[0][round_number] = time_walk(&ways[i], context);
	}
}

__attribute__((noinline)) static int descend(int depth)
{
	int result;

	if (depth == 0)
		return raise(SIGUSR1);
	result = descend(depth - 1);
	__asm__ volatile("");
	return result + 1;
}

static void load_libunwind(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		printf("libunwind.so.8 is not installed: left out\n");
		return;
	}
	*(void **)&libunwind.backtrace = dlsym(library, "unw_backtrace");
	*(void **)&libunwind.begin = dlsym(library, "_ULx86_64_init_local2");
	*(void **)&libunwind.step = dlsym(library, "_ULx86_64_step");
	*(void **)&libunwind.get = dlsym(library, "_ULx86_64_get_reg");
	ways[1].available = libunwind.backtrace != NULL;
	ways[2].available = libunwind.begin && libunwind.step && libunwind.get;
}

static int compare(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

static double ticks_per_ns(void)
{
	struct timespec start, now;
	uint64_t ticks = __rdtsc();
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (double)(now.tv_sec - start.tv_sec) * 1e9 +
		     (double)(now.tv_nsec - start.tv_nsec);
	} while (ns < 5e7);
	return (double)(__rdtsc() - ticks) / ns;
}

static double median(uint32_t *ticks, int count)
{
	qsort(ticks, (size_t)count, sizeof(ticks[0]), compare);
	return ticks[count / 2];
}

static void report(int rounds)
{
	double scale = ticks_per_ns(), ours = 0;
	size_t i;

	for (i = 0; i < WAY_COUNT; i++) {
		double warm, cold;

		if (!ways[i].available)
			continue;
		warm = median(ways[i].ticks[0], rounds) / scale;
		cold = median(ways[i].ticks[1], rounds / 20) / scale;
		if (i == 0)
			ours = warm;
		printf("%-24s %3d frames, warm %7.0f ns (x %.1f), cold %7.0f "
		       "ns\n",
		       ways[i].name, ways[i].frame_count, warm, warm / ours,
		       cold);
	}
}

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int build_tables(char **libraries, int count)
{
	struct error error;
	double start_ms;
	int i;

	for (i = 0; i < count; i++)
		if (!dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL))
			fprintf(stderr, "unwind: %s\n", dlerror());
	start_ms = cpu_ms();
	if (unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error)) {
		fprintf(stderr, "unwind: %s\n", error.text);
		return -1;
	}
	printf("tables of %zu objects: %.1f ms of CPU time, %zu KiB\n",
	       unwind_tables_enter()->object_count, cpu_ms() - start_ms,
	       unwind_tables_held_bytes() / 1024);
	unwind_tables_leave();
	return 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS_DEFAULT;
	struct sigaction action = {.sa_flags = SA_SIGINFO};
	struct error error;
	size_t i;

	if (rounds < 20) {
		fprintf(stderr,
		        "usage: unwind [ROUNDS [LIBRARY...]], 20 or more\n");
		return 2;
	}
	load_libunwind();
	if (load_faults_catch(&error)) {
		fprintf(stderr, "unwind: %s\n", error.text);
		return 1;
	}
	if (build_tables(argv + 2, argc > 2 ? argc - 2 : 0))
		return 1;
	for (i = 0; i < WAY_COUNT; i++) {
		ways[i].ticks[0] = calloc((size_t)rounds, sizeof(uint32_t));
		ways[i].ticks[1] =
			calloc((size_t)rounds / 20 + 1, sizeof(uint32_t));
	}
	action.sa_sigaction = handle_signal;
	sigaction(SIGUSR1, &action, NULL);
	for (round_number = 0; round_number < rounds; round_number++)
		descend(DEPTH);
	report(rounds);
	return 0;
}
