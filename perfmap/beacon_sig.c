// SPDX-License-Identifier: MIT
/*
 * Beacon: writes the chain and lights the probe. Runs in the signal handler.
 *
 * The kernel reads the chain with page faults disabled. It was written right
 * before, so it is in memory.
 */
#include "perfmap/beacon_sig.h"

#include "perfmap/beacon_probe_sig.h"

void beacon_emit(struct beacon_chain *chain, const uint64_t *addresses,
                 size_t count)
{
	struct beacon_link *links = chain->links;

	if (count > chain->capacity)
		count = chain->capacity;
	for (size_t i = 0; i < count; i++)
		links[i] = (struct beacon_link){&links[i + 1], addresses[i]};
	if (count > 0)
		links[count - 1].next = NULL;
	luajit_sysprof_sample(count > 0 ? links : NULL);
}
