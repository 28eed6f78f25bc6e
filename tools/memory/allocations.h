// SPDX-License-Identifier: MIT
/*
 * What a memory profile says in sum: events by location, who resized or freed
 * whose blocks, and what each location holds. Its memory grows with locations,
 * stacks and live blocks, not with events.
 *
 * Sums are estimates if events were sampled, and so of type double; without
 * sampling they are exact up to 2^53.
 */
#ifndef MEMORY_ALLOCATIONS_H
#define MEMORY_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blocks.h"
#include "profile/dump_reader.h"
#include "profile/id_map.h"
#include "profile/profile.h"
#include "stream/memprof_format.h"

enum allocation_section {
	SECTION_ALLOC,
	SECTION_REALLOC,
	SECTION_FREE,
	SECTION_COUNT
};

struct allocation_totals {
	double event_count;
	double alloc_bytes; /* sum of new sizes */
	double free_bytes;  /* sum of old sizes */
};

/* What a location has allocated. */
struct allocation_balance {
	double held_bytes; /* what is alive at the end */
	double alloc_count;
	double free_count;
};

/* A line of a Lua function, a C function, a trace, or the VM itself. */
struct allocation_location {
	uint32_t frame;        /* of the profile: its name */
	uint32_t trace_number; /* that it ran in; 0: none, or not told apart */
	struct allocation_totals events[SECTION_COUNT];
	struct allocation_balance balance;
};

/* Events of one location on blocks of another, its owner. */
struct allocation_override {
	uint32_t location;
	uint32_t owner;
	enum allocation_section section; /* not SECTION_ALLOC */
	double event_count;
	double alloc_bytes; /* new sizes */
	double free_bytes;  /* sizes that the blocks had */
};

/* What allocated at a stack. */
struct allocation_weights {
	double alloc_bytes;
	double alloc_count;
	double held_bytes;
};

#define ALLOCATION_RECENT_OVERRIDES 1024

struct allocations {
	/* Set before the first event. */
	uint64_t sample_bytes; /* 0: every event is in the dump */
	/* The old parser's balance: a resize moves a block to the line that
	 * resized it. Ours leaves it with the line that allocated it. */
	bool resize_moves_owner;

	struct allocation_location *locations; /* [0] is not used */
	size_t location_count;
	size_t location_capacity;
	struct allocation_override *overrides;
	size_t override_count;
	size_t override_capacity;
	struct allocation_weights *weights; /* by node of the profile */
	size_t weight_count;
	size_t weight_capacity;
	struct blocks live;

	uint64_t event_count; /* events in the dump */
	/* Resized or freed, but not allocated in the dump. */
	double before_count;
	double before_bytes;

	struct id_map locations_by_key;
	struct id_map overrides_by_key;
	/* Index in overrides, more 1, of one that was counted lately. */
	uint32_t recent_overrides[ALLOCATION_RECENT_OVERRIDES];
};

/* Zero a struct allocations before its first use. */
void allocations_free(struct allocations *allocations);

/* Index of the location, which is added if it is new. key tells locations of
 * one frame apart. */
uint32_t allocations_location(struct allocations *allocations, uint32_t frame,
                              uint64_t key, uint32_t trace_number);

/* node: stack of the event; flags: EVENT_FLAG_*. */
void allocations_count(struct allocations *allocations,
                       const struct dump_event *event, uint32_t location,
                       uint32_t node, uint64_t flags);

#endif
