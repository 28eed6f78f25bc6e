// SPDX-License-Identifier: MIT
/* What the outputs of memory profiles share; see memory_output.h. */
#include <stdlib.h>
#include <string.h>

#include "memory_output.h"
#include "profile/memory.h"

const char *memory_format_size(char *text, double bytes, bool human_readable)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	size_t unit = 0;

	if (!human_readable) {
		snprintf(text, MEMORY_SIZE_BYTES, "%.0fB", bytes);
		return text;
	}
	while (bytes >= 1024 && unit < 3) {
		bytes /= 1024;
		unit++;
	}
	if (bytes < 1e15 && bytes == (double)(uint64_t)bytes)
		snprintf(text, MEMORY_SIZE_BYTES, "%.0f%s", bytes, units[unit]);
	else
		snprintf(text, MEMORY_SIZE_BYTES, "%.2f%s", bytes, units[unit]);
	return text;
}

/* A location and what it is sorted by. */
struct ranked {
	uint32_t location;
	double event_count;
	const char *name;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left;
	const struct ranked *b = right;

	if (a->event_count != b->event_count)
		return a->event_count > b->event_count ? -1 : 1;
	return strcmp(a->name, b->name);
}

uint32_t *memory_rank_locations(const struct memory_profile *memory,
                                enum allocation_section section, size_t *count)
{
	const struct allocations *allocations = &memory->allocations;
	size_t location_count = allocations->location_count;
	struct ranked *ranked = memory_zeroed(location_count, sizeof(*ranked));
	uint32_t *order = memory_zeroed(location_count, sizeof(*order));

	*count = 0;
	for (size_t i = 1; i < location_count; i++) {
		const struct allocation_location *at =
			&allocations->locations[i];
		const struct allocation_totals *totals = &at->events[section];

		if (totals->event_count > 0 || totals->free_bytes > 0)
			ranked[(*count)++] = (struct ranked){
				(uint32_t)i, totals->event_count,
				memory->profile.frames[at->frame].name};
	}
	qsort(ranked, *count, sizeof(*ranked), compare_ranked);
	for (size_t i = 0; i < *count; i++)
		order[i] = ranked[i].location;
	free(ranked);
	return order;
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char **memory_owners(const struct memory_profile *memory,
                           uint32_t location, enum allocation_section section,
                           size_t *count)
{
	const struct allocations *allocations = &memory->allocations;
	const char **names = NULL;
	size_t capacity = 0;

	*count = 0;
	for (size_t i = 0; i < allocations->override_count; i++) {
		const struct allocation_override *override =
			&allocations->overrides[i];

		if (override->location != location ||
		    override->section != section)
			continue;
		names = memory_grow((void *)names, &capacity, *count + 1,
		                    sizeof(*names));
		names[(*count)++] =
			memory->profile
				.frames[allocations->locations[override->owner]
		                                .frame]
				.name;
	}
	if (*count > 0)
		qsort((void *)names, *count, sizeof(*names), compare_names);
	return names;
}
