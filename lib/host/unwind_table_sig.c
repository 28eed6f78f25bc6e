// SPDX-License-Identifier: MIT
/*
 * Look-ups in the published unwind tables. Runs in the signal handler.
 */
#include "unwind_table.h"

#include <string.h>

_Atomic(struct unwind_tables *) unwind_tables_published;

const struct unwind_tables *unwind_tables_current(void)
{
	return atomic_load_explicit(&unwind_tables_published,
	                            memory_order_acquire);
}

static const struct unwind_object *
find_object(const struct unwind_tables *tables, uint64_t address)
{
	size_t low = 0, high = tables->object_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tables->objects[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= tables->objects[low - 1].end)
		return NULL;
	return &tables->objects[low - 1];
}

const struct unwind_row *unwind_find_row(const struct unwind_tables *tables,
                                         uint64_t address,
                                         const struct unwind_object **object)
{
	const struct unwind_object *found = find_object(tables, address);
	size_t low = 0, high;
	uint32_t ip;

	if (!found)
		return NULL;
	ip = (uint32_t)(address - found->start);
	high = found->row_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (found->rows[middle].ip <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	if (object)
		*object = found;
	return &found->rows[low - 1];
}

void unwind_cache_begin(struct unwind_cache *cache,
                        const struct unwind_tables *tables)
{
	if (cache->tables == tables)
		return;
	memset(cache->entries, 0, sizeof(cache->entries));
	cache->tables = tables;
}

const struct unwind_row *unwind_cache_find(struct unwind_cache *cache,
                                           uint64_t address)
{
	struct unwind_cache_entry *entry =
		&cache->entries[(address ^ address >> 10) % UNWIND_CACHE_ROWS];
	const struct unwind_row *row;

	if (entry->address == address)
		return entry->row;
	row = unwind_find_row(cache->tables, address, NULL);
	if (row && (row->flags & UNWIND_NO_RULE))
		row = NULL;
	entry->address = address;
	entry->row = row;
	return row;
}

bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end)
{
	const struct unwind_tables *tables = unwind_tables_current();
	const struct unwind_object *object;
	const struct unwind_row *first, *last, *next;

	if (!tables)
		return false;
	first = unwind_find_row(tables, address, &object);
	if (!first)
		return false;
	next = first + 1;
	while (first > object->rows && !(first->flags & UNWIND_FUNCTION))
		first--;
	/* A gap between functions is one row without a rule. */
	if ((first->flags & UNWIND_NO_RULE) && next[-1].flags & UNWIND_FUNCTION)
		return false;
	last = object->rows + object->row_count;
	while (next < last && !(next->flags & UNWIND_FUNCTION))
		next++;
	*start = object->start + first->ip;
	*end = next < last ? object->start + next->ip : object->end;
	return true;
}
