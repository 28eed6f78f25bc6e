// SPDX-License-Identifier: MIT
/*
 * Address arena: hands out ranges, in the signal handler and on any thread.
 */
#include "perfmap/arena_sig.h"

#define RANGE_ALIGNMENT 16u

uint64_t address_arena_reserve(struct address_arena *arena, uint32_t bytes)
{
	uint64_t wanted = bytes == 0 ? 1 : bytes;
	uint64_t start =
		atomic_load_explicit(&arena->next, memory_order_relaxed);

	wanted = (wanted + RANGE_ALIGNMENT - 1) &
	         ~(uint64_t)(RANGE_ALIGNMENT - 1);
	do {
		if (start == 0 || wanted > arena->end - start)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&arena->next, &start, start + wanted, memory_order_relaxed,
		memory_order_relaxed));
	return start;
}
