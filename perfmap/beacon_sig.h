// SPDX-License-Identifier: MIT
/*
 * Beacon: makes perf record a stack of our choice.
 *
 * The kernel records a user call chain by following {next, return address}
 * pairs from the frame-pointer register. beacon_emit() points that register to
 * such pairs and executes the USDT probe luajit_sysprof:sample. Unless a
 * tracer is attached to it, the probe is one nop.
 *
 * Async-signal-safe: beacon_emit().
 */
#ifndef PERFMAP_BEACON_SIG_H
#define PERFMAP_BEACON_SIG_H

#include <stddef.h>
#include <stdint.h>

/* Room for one chain; entries ascend in memory, as some kernels demand. */
struct beacon_chain {
	size_t capacity;
	struct beacon_link {
		const struct beacon_link *next;
		uint64_t address;
	} links[];
};

/* Shows addresses (leaf first, count of them, cut at chain->capacity) as the
 * caller's call chain. */
void beacon_emit(struct beacon_chain *chain, const uint64_t *addresses,
                 size_t count);

#endif
