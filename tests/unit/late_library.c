// SPDX-License-Identifier: MIT
/*
 * A library that tests load while they run: burns time in a function of its
 * own, and calls back. LATE_LIBRARY_HOOK may name a function, by its address,
 * that is called by the constructor, so while the loader holds its lock.
 */
#include <stdint.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

EXPORTED uint64_t late_spin(uint64_t count);
EXPORTED uint64_t late_outer(uint64_t count);
EXPORTED uint64_t late_call(uint64_t (*function)(uint64_t), uint64_t argument);

uint64_t late_spin(uint64_t count)
{
	volatile uint64_t sum = 0;
	uint64_t i;

	for (i = 0; i < count; i++)
		sum += i ^ sum >> 3;
	return sum;
}

uint64_t late_outer(uint64_t count)
{
	return late_spin(count) + 1;
}

uint64_t late_call(uint64_t (*function)(uint64_t), uint64_t argument)
{
	return function(argument) + 1;
}

__attribute__((constructor)) static void call_hook(void)
{
	const char *hook = getenv("LATE_LIBRARY_HOOK");

	if (hook)
		((void (*)(void))strtoull(hook, NULL, 0))();
}
