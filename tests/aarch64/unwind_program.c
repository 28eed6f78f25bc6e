// SPDX-License-Identifier: MIT
/*
 * Walks its own stack from a signal, also through a signal handler and from a
 * leaf function, and says what is wrong. For another CPU than that of the
 * build: no test library. Exit status 0: all as it should be.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "host/unwind_sig.h"
#include "host/unwind_table.h"
#include "load_faults.h"
#include "load_sig.h"

#define FRAMES_MAX 64
#define KEPT       __attribute__((noinline, noclone))

static uint64_t addresses[FRAMES_MAX];
static size_t frame_count;
static enum unwind_result end_of_walk;
static int failure_count;

static void walk(int signal, siginfo_t *info, void *context)
{
	static struct unwind_cache cache;
	struct cpu_registers registers;
	bool exact = true;

	(void)signal;
	(void)info;
	cpu_registers_read(&registers, context);
	unwind_cache_begin(&cache);
	for (frame_count = 0; frame_count < FRAMES_MAX;) {
		uint64_t address = exact ? registers.ip : registers.ip - 1;

		addresses[frame_count++] = address;
		end_of_walk = unwind_step(unwind_cache_find(&cache, address),
		                          &registers);
		exact = end_of_walk == UNWIND_INTERRUPTED;
		if (!exact && end_of_walk != UNWIND_CALLER)
			break;
	}
	unwind_cache_end(&cache);
}

static size_t place_of(void *function)
{
	uint64_t start, end;
	size_t i;

	for (i = 0; i < frame_count; i++)
		if (unwind_find_function(addresses[i], &start, &end) &&
		    start == (uint64_t)function)
			return i;
	return FRAMES_MAX;
}

static void check(bool good, const char *what)
{
	printf("%s: %s\n", good ? "ok" : "FAIL", what);
	failure_count += !good;
}

KEPT static int raise_here(int signal)
{
	int result = raise(signal);

	__asm__ volatile("" ::: "memory");
	return result + 1;
}

KEPT static int middle(int signal)
{
	volatile char room[3000];
	int result;

	room[0] = (char)signal;
	result = raise_here(room[0]);
	return result + room[0];
}

static void handle_and_raise(int signal)
{
	raise_here(SIGUSR1);
	__asm__ volatile("" ::"r"(signal) : "memory");
}

static void *on_thread(void *argument)
{
	middle(SIGUSR1);
	__asm__ volatile("" ::: "memory");
	return argument;
}

static void check_loads(void)
{
	uint64_t value = 7, read = 0;
	uint8_t bytes[3] = {0};

	check(load_u64((uint64_t)&value, &read) && read == 7, "a load");
	check(load_bytes(bytes, (uint64_t) "abc", 3) && bytes[2] == 'c',
	      "a load of bytes");
	check(!load_u64(0x10000, &read), "a load that faults");
	check(!load_bytes(bytes, 0x10000, 3), "a load of bytes that faults");
}

static void catch (int signal, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = handler;
	sigaction(signal, &action, NULL);
}

int main(void)
{
	struct error error = {0};
	pthread_t thread;

	if (load_faults_catch(&error) ||
	    unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error)) {
		printf("FAIL: %s\n", error.text);
		return 1;
	}
	check_loads();
	catch (SIGUSR1, walk);
	signal(SIGUSR2, handle_and_raise);

	middle(SIGUSR1);
	check(end_of_walk == UNWIND_END, "a walk that reaches the entry");
	check(place_of(raise_here) < place_of(middle) &&
	              place_of(middle) < place_of(main) &&
	              place_of(main) < frame_count - 1,
	      "callers in order");

	middle(SIGUSR2);
	check(end_of_walk == UNWIND_END &&
	              place_of(handle_and_raise) < place_of(middle) &&
	              place_of(middle) < place_of(main),
	      "a walk through a signal handler");

	pthread_create(&thread, NULL, on_thread, NULL);
	pthread_join(thread, NULL);
	check(end_of_walk == UNWIND_END &&
	              place_of(middle) < place_of(on_thread) &&
	              place_of(on_thread) < frame_count - 1,
	      "a walk on a thread");
	return failure_count != 0;
}
