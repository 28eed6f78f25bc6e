// SPDX-License-Identifier: MIT
/*
 * Tables of a memory profile for a terminal: what is held, then events by
 * location, then what is missing.
 */
#include <stdlib.h>
#include <string.h>

#include "memory_output.h"
#include "profile/memory.h"

static void write_size(FILE *file, double bytes, bool human_readable)
{
	char text[MEMORY_SIZE_BYTES];

	fprintf(file, " %14s", memory_format_size(text, bytes, human_readable));
}

/* ---- what is held -------------------------------------------------------------- */

struct held_row {
	uint32_t location;
	const struct allocation_balance *balance;
	const char *name;
};

static int compare_held(const void *left, const void *right)
{
	const struct held_row *a = left;
	const struct held_row *b = right;

	if (a->balance->held_bytes != b->balance->held_bytes)
		return a->balance->held_bytes > b->balance->held_bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void write_held_row(FILE *file, const struct memory_profile *memory,
                           const struct held_row *row, bool human_readable)
{
	char name[MEMORY_NAME_BYTES];

	write_size(file, row->balance->held_bytes, human_readable);
	fprintf(file, " %12.0f %12.0f  %s\n", row->balance->alloc_count,
	        row->balance->free_count,
	        memory_location_name(memory, row->location, name));
}

static void write_held(FILE *file, const struct memory_profile *memory,
                       bool human_readable)
{
	const struct allocations *allocations = &memory->allocations;
	size_t location_count = allocations->location_count;
	struct held_row *rows = memory_zeroed(location_count, sizeof(*rows));
	double held_bytes = 0;
	size_t count = 0;

	for (size_t i = 1; i < location_count; i++) {
		const struct allocation_location *at =
			&allocations->locations[i];

		/* Estimates of nothing may be a little off. */
		if (at->balance.held_bytes < 0.5)
			continue;
		held_bytes += at->balance.held_bytes;
		rows[count++] = (struct held_row){
			(uint32_t)i, &at->balance,
			memory->profile.frames[at->frame].name};
	}
	qsort(rows, count, sizeof(*rows), compare_held);
	fprintf(file, "HEAP SUMMARY\n %14s %12s %12s  %s\n", "held", "allocs",
	        "frees", "allocated at");
	for (size_t i = 0; i < count; i++)
		write_held_row(file, memory, &rows[i], human_readable);
	write_size(file, held_bytes, human_readable);
	fprintf(file, " %12s %12s  in all\n", "", "");
	free(rows);
}

/* ---- events ------------------------------------------------------------------ */

static void write_owners(FILE *file, const struct memory_profile *memory,
                         uint32_t location, enum allocation_section section,
                         bool human_readable)
{
	const struct allocations *allocations = &memory->allocations;
	char name[MEMORY_NAME_BYTES];

	for (size_t i = 0; i < allocations->override_count; i++) {
		const struct allocation_override *override =
			&allocations->overrides[i];

		if (override->location != location ||
		    override->section != section || override->owner == location)
			continue;
		fprintf(file, " %12.0f %14s", override->event_count, "");
		write_size(file, override->free_bytes, human_readable);
		fprintf(file, "    of %s\n",
		        memory_location_name(memory, override->owner, name));
	}
}

static void write_section(FILE *file, const struct memory_profile *memory,
                          enum allocation_section section, const char *title,
                          bool human_readable)
{
	struct allocation_totals sum = {0};
	char name[MEMORY_NAME_BYTES];
	size_t count;
	uint32_t *order = memory_rank_locations(memory, section, &count);

	fprintf(file, "\n%s\n %12s %14s %14s  %s\n", title, "events",
	        "allocated", "freed", "location");
	for (size_t i = 0; i < count; i++) {
		const struct allocation_totals *totals =
			&memory->allocations.locations[order[i]]
				 .events[section];

		sum.event_count += totals->event_count;
		sum.alloc_bytes += totals->alloc_bytes;
		sum.free_bytes += totals->free_bytes;
		fprintf(file, " %12.0f", totals->event_count);
		write_size(file, totals->alloc_bytes, human_readable);
		write_size(file, totals->free_bytes, human_readable);
		fprintf(file, "  %s\n",
		        memory_location_name(memory, order[i], name));
		write_owners(file, memory, order[i], section, human_readable);
	}
	fprintf(file, " %12.0f", sum.event_count);
	write_size(file, sum.alloc_bytes, human_readable);
	write_size(file, sum.free_bytes, human_readable);
	fputs("  in all\n", file);
	free(order);
}

static void write_before(FILE *file, const struct memory_profile *memory,
                         bool human_readable)
{
	const struct allocations *allocations = &memory->allocations;

	if (allocations->before_count == 0)
		return;
	fprintf(file, "\nFROM BEFORE THE START\n %12s %14s %14s\n %12.0f %14s",
	        "events", "", "freed", allocations->before_count, "");
	write_size(file, allocations->before_bytes, human_readable);
	fputs("  of blocks that are in no balance\n", file);
}

void memory_output_tables(FILE *file, const struct memory_profile *memory,
                          const struct memory_output_options *options)
{
	bool human_readable = options->human_readable;

	write_held(file, memory, human_readable);
	if (options->leak_only)
		return;
	write_section(file, memory, SECTION_ALLOC, "ALLOCATIONS",
	              human_readable);
	write_section(file, memory, SECTION_REALLOC, "REALLOCATIONS",
	              human_readable);
	write_section(file, memory, SECTION_FREE, "DEALLOCATIONS",
	              human_readable);
	write_before(file, memory, human_readable);
}
