// SPDX-License-Identifier: MIT
/*
 * Look-ups in the published unwind tables. Runs in the signal handler.
 */
#include "unwind_table.h"

#include <string.h>

_Atomic(struct unwind_tables *) unwind_tables_published;
_Atomic unsigned int unwind_tables_reader_count;

const struct unwind_tables *unwind_tables_enter(void)
{
	/* Sequentially consistent, as are the store of a new set and the look
	 * at the count behind it: who is not seen there sees the new set. */
	atomic_fetch_add(&unwind_tables_reader_count, 1);
	return atomic_load(&unwind_tables_published);
}

void unwind_tables_leave(void)
{
	atomic_fetch_sub_explicit(&unwind_tables_reader_count, 1,
	                          memory_order_release);
}

static const struct unwind_object *
find_object(const struct unwind_tables *tables, uint64_t address)
{
	size_t low = 0, high = tables ? tables->object_count : 0;

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

bool unwind_tables_hold(const struct unwind_tables *tables, uint64_t address)
{
	return find_object(tables, address) != NULL;
}

/* Number of the row in force, counted from 1; 0 if there is none. */
static size_t find_row(const struct unwind_object *object, uint64_t address)
{
	const uint32_t *ips = object->rows ? object->rows->ips : NULL;
	size_t low = 0, high = object->rows ? object->rows->count : 0;
	uint32_t ip = (uint32_t)(address - object->start);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ips[middle] <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct unwind_rule *rule_of(const struct unwind_rows *rows,
                                         size_t row)
{
	return &rows->rules[rows->rule_numbers[row]];
}

const struct unwind_rule *unwind_find_rule(const struct unwind_tables *tables,
                                           uint64_t address)
{
	const struct unwind_object *object = find_object(tables, address);
	size_t row = object ? find_row(object, address) : 0;

	return row ? rule_of(object->rows, row - 1) : NULL;
}

static bool starts_function(const struct unwind_rows *rows, size_t row)
{
	return rule_of(rows, row)->flags & UNWIND_FUNCTION;
}

static bool find_function(const struct unwind_object *object, uint64_t address,
                          uint64_t *start, uint64_t *end)
{
	const struct unwind_rows *rows = object->rows;
	size_t next = find_row(object, address), first;

	if (!next)
		return false;
	for (first = next - 1; first && !starts_function(rows, first);)
		first--;
	/* A gap between functions is one row without a rule. */
	if (first == next - 1 && rule_of(rows, first)->flags & UNWIND_NO_RULE)
		return false;
	while (next < rows->count && !starts_function(rows, next))
		next++;
	*start = object->start + rows->ips[first];
	*end = next < rows->count ? object->start + rows->ips[next]
	                          : object->end;
	return true;
}

bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end)
{
	const struct unwind_object *object =
		find_object(unwind_tables_enter(), address);
	bool found = object && find_function(object, address, start, end);

	unwind_tables_leave();
	return found;
}

bool unwind_is_trampoline(uint64_t address)
{
	const struct unwind_rule *rule =
		unwind_find_rule(unwind_tables_enter(), address);
	bool is_trampoline = rule && rule->flags & UNWIND_SIGNAL;

	unwind_tables_leave();
	return is_trampoline;
}

void unwind_cache_begin(struct unwind_cache *cache)
{
	const struct unwind_tables *tables = unwind_tables_enter();
	uint64_t generation = tables ? tables->generation : 0;

	cache->tables = tables;
	if (cache->generation == generation)
		return;
	memset(cache->entries, 0, sizeof(cache->entries));
	cache->generation = generation;
}

void unwind_cache_end(struct unwind_cache *cache)
{
	cache->tables = NULL;
	unwind_tables_leave();
}

const struct unwind_rule *unwind_cache_find(struct unwind_cache *cache,
                                            uint64_t address)
{
	struct unwind_cache_entry *entry =
		&cache->entries[(address ^ address >> 10) % UNWIND_CACHE_RULES];
	const struct unwind_rule *rule;

	if (entry->address == address)
		return entry->rule;
	rule = unwind_find_rule(cache->tables, address);
	if (rule && (rule->flags & UNWIND_NO_RULE))
		rule = NULL;
	entry->address = address;
	entry->rule = rule;
	return rule;
}
