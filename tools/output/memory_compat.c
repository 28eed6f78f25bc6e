// SPDX-License-Identifier: MIT
/*
 * The report of the old parser, word for word, its balances included: for each
 * location what its own allocations took, and what others made of its blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "memory_output.h"
#include "profile/memory.h"

static void write_event_line(FILE *file, const char *name,
                             const struct allocation_totals *totals,
                             bool human_readable)
{
	char taken[MEMORY_SIZE_BYTES], given[MEMORY_SIZE_BYTES];

	memory_format_size(taken, totals->alloc_bytes, human_readable);
	memory_format_size(given, totals->free_bytes, human_readable);
	fprintf(file, "%s: %.0f events\t+%s\t-%s\n", name, totals->event_count,
	        taken, given);
}

static void write_section(FILE *file, const struct memory_profile *memory,
                          enum allocation_section section, const char *title,
                          bool human_readable)
{
	const struct allocations *allocations = &memory->allocations;
	size_t count;
	uint32_t *order = memory_rank_locations(memory, section, &count);

	fprintf(file, "%s\n", title);
	for (size_t i = 0; i < count; i++) {
		const struct allocation_location *at =
			&allocations->locations[order[i]];
		size_t owner_count;
		const char **owners =
			memory_owners(memory, order[i], section, &owner_count);

		write_event_line(file, memory->profile.frames[at->frame].name,
		                 &at->events[section], human_readable);
		if (owner_count > 0)
			fputs("\tOverrides:\n", file);
		for (size_t j = 0; j < owner_count; j++)
			fprintf(file, "\t\t%s\n", owners[j]);
		if (owner_count > 0)
			fputc('\n', file);
		free((void *)owners);
	}
	fputc('\n', file);
	free(order);
}

/* ---- heap summary ------------------------------------------------------------ */

struct heap_row {
	const char *name;
	double held_bytes;
	double alloc_count;
	double free_count;
};

static void count_overrides(const struct allocations *allocations,
                            struct heap_row *rows)
{
	for (size_t i = 0; i < allocations->override_count; i++) {
		const struct allocation_override *override =
			&allocations->overrides[i];
		struct heap_row *row = &rows[override->owner];

		row->held_bytes += override->alloc_bytes - override->free_bytes;
		row->free_count += override->event_count;
		if (override->section == SECTION_REALLOC)
			row->alloc_count += override->event_count;
	}
}

static int compare_by_name(const void *left, const void *right)
{
	return strcmp(((const struct heap_row *)left)->name,
	              ((const struct heap_row *)right)->name);
}

static int compare_by_held(const void *left, const void *right)
{
	const struct heap_row *a = left;
	const struct heap_row *b = right;

	if (a->held_bytes != b->held_bytes)
		return a->held_bytes > b->held_bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Locations of one name are one row. Returns how many there are. */
static size_t merge_rows(struct heap_row *rows, size_t count)
{
	size_t kept = 0;

	qsort(rows, count, sizeof(*rows), compare_by_name);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 ||
		    strcmp(rows[kept - 1].name, rows[i].name) != 0) {
			rows[kept++] = rows[i];
			continue;
		}
		rows[kept - 1].held_bytes += rows[i].held_bytes;
		rows[kept - 1].alloc_count += rows[i].alloc_count;
		rows[kept - 1].free_count += rows[i].free_count;
	}
	return kept;
}

static void write_heap(FILE *file, const struct memory_profile *memory,
                       bool human_readable)
{
	const struct allocations *allocations = &memory->allocations;
	size_t count = allocations->location_count;
	struct heap_row *rows = memory_zeroed(count, sizeof(*rows));

	for (size_t i = 1; i < count; i++) {
		const struct allocation_location *at =
			&allocations->locations[i];

		rows[i].name = memory->profile.frames[at->frame].name;
		rows[i].held_bytes = at->events[SECTION_ALLOC].alloc_bytes;
		rows[i].alloc_count = at->events[SECTION_ALLOC].event_count;
	}
	count_overrides(allocations, rows);
	fputs("HEAP SUMMARY:\n", file);
	if (count > 0)
		count = merge_rows(rows + 1, count - 1);
	if (count > 0)
		qsort(rows + 1, count, sizeof(*rows), compare_by_held);
	for (size_t i = 1; i <= count && rows[i].held_bytes > 0; i++) {
		char held[MEMORY_SIZE_BYTES];

		memory_format_size(held, rows[i].held_bytes, human_readable);
		fprintf(file, "%s holds %s: %.0f allocs, %.0f frees\n",
		        rows[i].name, held, rows[i].alloc_count,
		        rows[i].free_count);
	}
	fputc('\n', file);
	free(rows);
}

/* ---- aliases ----------------------------------------------------------------- */

/* Source text in place of a chunk name; empty lines do not count. */
static void write_alias(FILE *file, size_t number, const char *text)
{
	unsigned line = 0;

	fprintf(file, "function_alias_%zu:\n", number);
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		if (length > 0)
			fprintf(file, "%u\t| %.*s\n", ++line, (int)length,
			        text);
		text += length + (text[length] == '\n');
	}
	fputs("\n\n", file);
}

void memory_output_compat(FILE *file, const struct memory_profile *memory,
                          const struct memory_output_options *options)
{
	bool human_readable = options->human_readable;

	if (!options->leak_only) {
		write_section(file, memory, SECTION_ALLOC, "ALLOCATIONS",
		              human_readable);
		write_section(file, memory, SECTION_REALLOC, "REALLOCATIONS",
		              human_readable);
		write_section(file, memory, SECTION_FREE, "DEALLOCATIONS",
		              human_readable);
	}
	write_heap(file, memory, human_readable);
	if (memory->alias_count > 0)
		fputs("ALIASES:\n", file);
	for (size_t i = 0; i < memory->alias_count; i++)
		write_alias(file, i + 1, memory->aliases[i]);
}
