// SPDX-License-Identifier: MIT
/* Blocks of a memory profile that are alive, by address. */
#ifndef MEMORY_BLOCKS_H
#define MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block {
	uint64_t address;
	uint64_t bytes;
	uint32_t location; /* whose it is, from 1; 0: the slot is free */
	uint32_t node;     /* stack that it was allocated at */
};

struct blocks {
	struct block *slots; /* open addressing */
	size_t slot_count;   /* power of two, or 0 */
	size_t count;
};

/* Zero a struct blocks before its first use. */
void blocks_free(struct blocks *blocks);

/* The address must not be there yet. */
void blocks_add(struct blocks *blocks, const struct block *block);
/* Takes the block out. False: there is none at this address. */
bool blocks_take(struct blocks *blocks, uint64_t address, struct block *block);

#endif
