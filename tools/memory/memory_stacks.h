// SPDX-License-Identifier: MIT
/* A memory profile as stacks with a weight each, for flame graphs. */
#ifndef MEMORY_MEMORY_STACKS_H
#define MEMORY_MEMORY_STACKS_H

#include "memory_load.h"

enum memory_weight {
	WEIGHT_ALLOC_BYTES,
	WEIGHT_ALLOC_COUNT,
	WEIGHT_HELD_BYTES,
};

/* Fills stacks, whose samples are the weights; to be closed. Changes the counts
 * of memory->profile: once for each memory profile. */
void memory_stacks(struct memory_profile *memory, enum memory_weight weight,
                   struct profile *stacks);

#endif
