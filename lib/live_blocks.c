// SPDX-License-Identifier: MIT
/* Live blocks; see live_blocks.h. On the VM's thread. */
#include "live_blocks.h"

#include <sys/mman.h>

#define SLOTS_MIN 4096

static size_t home_slot(const struct live_blocks *blocks, uint64_t address)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash >> 32) & (blocks->slot_count - 1);
}

/* The slot of the address, or the free one where it belongs. */
static size_t find_slot(const struct live_blocks *blocks, uint64_t address)
{
	size_t i = home_slot(blocks, address);

	while (blocks->slots[i] && blocks->slots[i] != address)
		i = (i + 1) & (blocks->slot_count - 1);
	return i;
}

static bool grow(struct live_blocks *blocks)
{
	size_t slot_count =
		blocks->slot_count ? 2 * blocks->slot_count : SLOTS_MIN;
	struct live_blocks grown = {
		.slot_count = slot_count,
		.count = blocks->count,
	};
	size_t i;

	if (blocks->count >= LIVE_BLOCKS_MAX)
		return false;
	grown.slots = mmap(NULL, slot_count * sizeof(uint64_t),
	                   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                   -1, 0);
	if (grown.slots == MAP_FAILED)
		return false;
	for (i = 0; i < blocks->slot_count; i++)
		if (blocks->slots[i])
			grown.slots[find_slot(&grown, blocks->slots[i])] =
				blocks->slots[i];
	live_blocks_close(blocks);
	*blocks = grown;
	return true;
}

bool live_blocks_add(struct live_blocks *blocks, uint64_t address)
{
	size_t slot;

	if (2 * blocks->count >= blocks->slot_count && !grow(blocks))
		return false;
	slot = find_slot(blocks, address);
	if (!blocks->slots[slot])
		blocks->count++;
	blocks->slots[slot] = address;
	return true;
}

bool live_blocks_hold(const struct live_blocks *blocks, uint64_t address)
{
	return blocks->count && blocks->slots[find_slot(blocks, address)];
}

/* Moves up what a free slot would cut off from its home. */
static void close_gap(struct live_blocks *blocks, size_t gap)
{
	size_t mask = blocks->slot_count - 1;
	size_t i = gap;

	for (;;) {
		i = (i + 1) & mask;
		if (!blocks->slots[i])
			break;
		if (((i - home_slot(blocks, blocks->slots[i])) & mask) <
		    ((i - gap) & mask))
			continue;
		blocks->slots[gap] = blocks->slots[i];
		gap = i;
	}
	blocks->slots[gap] = 0;
}

bool live_blocks_remove(struct live_blocks *blocks, uint64_t address)
{
	size_t slot;

	if (blocks->count == 0)
		return false;
	slot = find_slot(blocks, address);
	if (!blocks->slots[slot])
		return false;
	close_gap(blocks, slot);
	blocks->count--;
	return true;
}

void live_blocks_close(struct live_blocks *blocks)
{
	if (blocks->slots)
		munmap(blocks->slots, blocks->slot_count * sizeof(uint64_t));
	*blocks = (struct live_blocks){0};
}
