// SPDX-License-Identifier: MIT
/*
 * Output formats of luajit-parse-memprof that are not flame graphs. Errors of
 * the file are left in it (ferror).
 */
#ifndef OUTPUT_MEMORY_OUTPUT_H
#define OUTPUT_MEMORY_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "memory/memory_load.h"

struct memory_output_options {
	bool leak_only;      /* what is held at the end, no events */
	bool human_readable; /* 1.50KiB, not 1536B */
};

/* Tables for a terminal. */
void memory_output_tables(FILE *file, const struct memory_profile *memory,
                          const struct memory_output_options *options);
/* The words and the layout of the parser of Tarantool's LuaJIT; the profile is
 * loaded with its names and balances. */
void memory_output_compat(FILE *file, const struct memory_profile *memory,
                          const struct memory_output_options *options);

/* Room for a size. */
#define MEMORY_SIZE_BYTES 32
const char *memory_format_size(char *text, double bytes, bool human_readable);

/* Locations with events in the section, most events first. *count of them; free
 * the array with free(). */
uint32_t *memory_rank_locations(const struct memory_profile *memory,
                                enum allocation_section section, size_t *count);

/* Names of the owners whose blocks a location ended in the section, sorted; the
 * names are the profile's. */
const char **memory_owners(const struct memory_profile *memory,
                           uint32_t location, enum allocation_section section,
                           size_t *count);

#endif
