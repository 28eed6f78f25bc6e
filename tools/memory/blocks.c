// SPDX-License-Identifier: MIT
/* Live blocks; see blocks.h. */
#include "blocks.h"

#include <stdlib.h>

#include "profile/memory.h"

#define SLOTS_MIN 1024

void blocks_free(struct blocks *blocks)
{
	free(blocks->slots);
	*blocks = (struct blocks){0};
}

static size_t home_slot(const struct blocks *blocks, uint64_t address)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash ^ hash >> 32) & (blocks->slot_count - 1);
}

/* The slot of the address, or the free one where it belongs. */
static size_t find_slot(const struct blocks *blocks, uint64_t address)
{
	size_t i = home_slot(blocks, address);

	while (blocks->slots[i].location != 0 &&
	       blocks->slots[i].address != address)
		i = (i + 1) & (blocks->slot_count - 1);
	return i;
}

static void grow(struct blocks *blocks)
{
	struct blocks old = *blocks;

	blocks->slot_count = old.slot_count ? 2 * old.slot_count : SLOTS_MIN;
	blocks->slots =
		memory_zeroed(blocks->slot_count, sizeof(*blocks->slots));
	for (size_t i = 0; i < old.slot_count; i++)
		if (old.slots[i].location != 0)
			blocks->slots[find_slot(blocks, old.slots[i].address)] =
				old.slots[i];
	free(old.slots);
}

void blocks_add(struct blocks *blocks, const struct block *block)
{
	if (3 * blocks->count >= 2 * blocks->slot_count)
		grow(blocks);
	blocks->slots[find_slot(blocks, block->address)] = *block;
	blocks->count++;
}

/* Moves up what a free slot would cut off from its home. */
static void close_gap(struct blocks *blocks, size_t gap)
{
	size_t mask = blocks->slot_count - 1;

	for (size_t i = (gap + 1) & mask; blocks->slots[i].location != 0;
	     i = (i + 1) & mask) {
		size_t home = home_slot(blocks, blocks->slots[i].address);

		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		blocks->slots[gap] = blocks->slots[i];
		gap = i;
	}
	blocks->slots[gap].location = 0;
}

bool blocks_take(struct blocks *blocks, uint64_t address, struct block *block)
{
	if (blocks->count == 0)
		return false;

	size_t slot = find_slot(blocks, address);
	if (blocks->slots[slot].location == 0)
		return false;
	*block = blocks->slots[slot];
	close_gap(blocks, slot);
	blocks->count--;
	return true;
}
