// SPDX-License-Identifier: MIT
/*
 * Loads a memory profile: reads a memprof dump once, front to back, and names
 * locations in stream order.
 */
#ifndef MEMORY_MEMORY_LOAD_H
#define MEMORY_MEMORY_LOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "allocations.h"
#include "profile/profile.h"

struct memory_options {
	bool compat; /* names and balances as the old parser's */
	bool traces; /* tell apart what ran in which trace */
};

/* ITEM_MEMPROF_SESSION and ITEM_MEMPROF_END. */
struct memory_session {
	bool known; /* the dump has our extension */
	bool ended; /* ITEM_MEMPROF_END was read */
	uint64_t pid;
	uint64_t vm_number;
	uint64_t sample_bytes;
	bool stacks;
	uint64_t start_monotonic_ns;
	uint64_t stop_monotonic_ns;
	uint64_t event_count; /* of the recorder, if ended */
	uint64_t lost_count;
};

struct memory_profile {
	struct allocations allocations;
	struct memory_session session;
	struct profile profile; /* frames, and the tree of stacks */
	char **aliases;         /* chunk names of several lines, if compat */
	size_t alias_count;

	bool complete;     /* the dump was read to its end record */
	bool has_trailing; /* there are bytes behind it */
	char error[512];   /* not complete: file, offset, expected, got */
};

/* Always leaves what could be read; memory is to be closed. */
void memory_load(struct memory_profile *memory, FILE *file,
                 const char *file_name, const struct memory_options *options);
void memory_close(struct memory_profile *memory);

/* Events that are missing, for all reasons. */
uint64_t memory_lost_count(const struct memory_profile *memory);

/* The name of a location, with the line; name has MEMORY_NAME_BYTES. Returns
 * text, or the frame's own name. */
#define MEMORY_NAME_BYTES 600
const char *memory_location_name(const struct memory_profile *memory,
                                 uint32_t location, char *text);

const char *memprof_lost_name(uint64_t reason);

#endif
