// SPDX-License-Identifier: MIT
/*
 * Labels, as the signal handler reads them.
 */
#include "labels_state.h"

struct labels *_Atomic labels_published;

uint32_t labels_find(uint64_t coroutine, uint64_t *witness)
{
	struct labels *labels =
		atomic_load_explicit(&labels_published, memory_order_acquire);
	uint32_t slot = labels_slot(coroutine);
	uint64_t found;
	uint32_t label;

	if (!labels)
		return 0;
	/* Ends: a quarter of the entries is never used. */
	for (;; slot = (slot + 1) % LABELLED_MAX) {
		struct labelled *entry = &labels->coroutines[slot];

		found = atomic_load_explicit(&entry->coroutine,
		                             memory_order_acquire);
		if (!found)
			return 0;
		if (found != coroutine)
			continue;
		label = atomic_load_explicit(&entry->label,
		                             memory_order_acquire);
		*witness = atomic_load_explicit(&entry->witness,
		                                memory_order_acquire);
		/* Another coroutine may have taken the entry over. */
		found = atomic_load_explicit(&entry->coroutine,
		                             memory_order_relaxed);
		return found == coroutine ? label : 0;
	}
}
