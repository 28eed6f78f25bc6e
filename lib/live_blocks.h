// SPDX-License-Identifier: MIT
/*
 * Live blocks: the set of addresses of sampled blocks that the VM has not given
 * back yet. On the VM's thread, in its allocator. Takes its memory from the
 * kernel, never from an allocator.
 */
#ifndef LIB_LIVE_BLOCKS_H
#define LIB_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16 MiB of addresses at the most. */
#define LIVE_BLOCKS_MAX (1u << 20)

struct live_blocks {
	uint64_t *slots;   /* open addressing; 0: free */
	size_t slot_count; /* power of two, or 0 */
	size_t count;
};

/* False: there is no room. */
bool live_blocks_add(struct live_blocks *blocks, uint64_t address);
bool live_blocks_hold(const struct live_blocks *blocks, uint64_t address);
/* Was it there? */
bool live_blocks_remove(struct live_blocks *blocks, uint64_t address);
void live_blocks_close(struct live_blocks *blocks);

#endif
