// SPDX-License-Identifier: MIT
/*
 * Map from a pair of numbers to an index: addresses, trace numbers, and
 * (parent, frame) pairs of the stack tree are looked up by it.
 */
#ifndef PROFILE_ID_MAP_H
#define PROFILE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_map {
	struct id_map_slot *slots; /* open addressing, id_map.c */
	size_t slot_count;         /* power of two, or 0 */
	size_t used;
	uint32_t generation; /* slots of another one are free */
};

void id_map_free(struct id_map *map);
/* Forgets everything, at no cost. */
void id_map_clear(struct id_map *map);

/* The value of the pair, or NULL. Valid until the next id_map_add(). */
uint32_t *id_map_find(const struct id_map *map, uint64_t first,
                      uint64_t second);
/* The same, adding the pair with the given value where it is missing. */
uint32_t *id_map_add(struct id_map *map, uint64_t first, uint64_t second,
                     uint32_t value, bool *is_new);

#endif
