// SPDX-License-Identifier: MIT
/* Map from a pair of numbers to an index; see id_map.h. */
#include "id_map.h"

#include <stdlib.h>

#include "memory.h"

struct id_map_slot {
	uint64_t first;
	uint64_t second;
	uint32_t value;
	uint32_t generation; /* 0: never used */
};

void id_map_free(struct id_map *map)
{
	free(map->slots);
	*map = (struct id_map){0};
}

void id_map_clear(struct id_map *map)
{
	if (map->generation == UINT32_MAX)
		id_map_free(map);
	else
		map->generation++;
	map->used = 0;
}

static uint64_t mix(uint64_t hash)
{
	hash *= 0x9e3779b97f4a7c15u;
	return hash ^ (hash >> 32);
}

/* The slot of the pair, or the free one where it belongs. */
static struct id_map_slot *slot_of(const struct id_map *map, uint64_t first,
                                   uint64_t second)
{
	size_t mask = map->slot_count - 1;
	size_t i = (size_t)mix(mix(first) ^ second) & mask;

	while (map->slots[i].generation == map->generation &&
	       (map->slots[i].first != first || map->slots[i].second != second))
		i = (i + 1) & mask;
	return &map->slots[i];
}

static void grow(struct id_map *map)
{
	struct id_map old = *map;

	map->slot_count = old.slot_count ? old.slot_count * 2 : 64;
	map->slots = memory_zeroed(map->slot_count, sizeof(*map->slots));
	map->generation = 1;
	for (size_t i = 0; i < old.slot_count; i++) {
		if (old.slots[i].generation != old.generation)
			continue;
		struct id_map_slot *slot =
			slot_of(map, old.slots[i].first, old.slots[i].second);

		*slot = old.slots[i];
		slot->generation = map->generation;
	}
	free(old.slots);
}

uint32_t *id_map_find(const struct id_map *map, uint64_t first, uint64_t second)
{
	if (map->used == 0)
		return NULL;

	struct id_map_slot *slot = slot_of(map, first, second);
	return slot->generation == map->generation ? &slot->value : NULL;
}

uint32_t *id_map_add(struct id_map *map, uint64_t first, uint64_t second,
                     uint32_t value, bool *is_new)
{
	if (map->slot_count == 0 || map->used * 3 >= map->slot_count * 2)
		grow(map);

	struct id_map_slot *slot = slot_of(map, first, second);
	*is_new = slot->generation != map->generation;
	if (*is_new) {
		*slot = (struct id_map_slot){first, second, value,
		                             map->generation};
		map->used++;
	}
	return &slot->value;
}
