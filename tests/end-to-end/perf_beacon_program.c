// SPDX-License-Identifier: MIT
/*
 * Emits 1,000 known chains by the beacon, of lengths from 0 up to what perf
 * shows, and prints each: the frames' names, leaf first, behind the leaf that
 * perf sees first. Needs nothing of LuaJIT.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfmap/arena_sig.h"
#include "perfmap/beacon_sig.h"
#include "perfmap/mapfile.h"

#define CHAINS      1000
#define FUNCTIONS   50
#define RANGE_BYTES 32
/* perf's 127 frames, less the one of the beacon itself. */
#define LENGTH_MAX 126

/* Names that perf would drop, cut or break lines at are shown all the same. */
static const struct {
	const char *given, *shown;
} odd_names[] = {
	{"f", "f??"},
	{"go", "go?"},
	{"two\nlines a.lua:1", "two?lines a.lua:1"},
	{"0x12 +0x34 b.lua:2", "0x12 +0x34 b.lua:2"},
	{"caf\xc3\xa9 c.lua:3", "caf\xc3\xa9 c.lua:3"},
};

#define ODD_COUNT (sizeof(odd_names) / sizeof(odd_names[0]))

/* As it is given to the map file, or as perf shows it. */
static const char *name_of(unsigned function, bool shown)
{
	static char name[32];

	if (function < ODD_COUNT)
		return shown ? odd_names[function].shown
		             : odd_names[function].given;
	snprintf(name, sizeof(name), "function_%u file.lua:%u", function,
	         function);
	return name;
}

static void name_ranges(struct mapfile *map, struct address_arena *arena,
                        uint64_t *ranges)
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		const char *name = name_of(i, false);

		ranges[i] = address_arena_reserve(arena, RANGE_BYTES);
		mapfile_append(map, ranges[i], RANGE_BYTES, name, strlen(name));
	}
}

int main(void)
{
	struct address_arena arena;
	struct mapfile map;
	struct beacon_chain *chain =
		malloc(sizeof(*chain) + LENGTH_MAX * sizeof(chain->links[0]));
	uint64_t ranges[FUNCTIONS], addresses[LENGTH_MAX];
	uint32_t random = 1;

	if (!chain || address_arena_open(&arena, ADDRESS_ARENA_BYTES) != 0 ||
	    mapfile_open(&map) != 0)
		return EXIT_FAILURE;
	chain->capacity = LENGTH_MAX;
	name_ranges(&map, &arena, ranges);
	for (int i = 0; i < CHAINS; i++) {
		size_t length = (size_t)i % (LENGTH_MAX + 1);

		printf("luajit_sysprof_sample");
		for (size_t j = 0; j < length; j++) {
			uint32_t function;

			random = random * 1664525 + 1013904223;
			function = (random >> 8) % FUNCTIONS;
			/* Any address of the range is the function. */
			addresses[j] = ranges[function] + random % RANGE_BYTES;
			printf(";%s", name_of(function, true));
		}
		printf("\n");
		beacon_emit(chain, addresses, length);
	}
	if (mapfile_close(&map) != 0)
		return EXIT_FAILURE;
	address_arena_close(&arena);
	free(chain);
	return EXIT_SUCCESS;
}
