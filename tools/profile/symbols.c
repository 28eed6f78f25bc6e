// SPDX-License-Identifier: MIT
/* Symbols of a dump; see symbols.h. */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#include "fast_names.h"
#include "memory.h"

void symbols_free(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->function_count; i++) {
		free(symbols->functions[i].chunk);
		free(symbols->functions[i].name);
	}
	for (size_t i = 0; i < symbols->c_count; i++)
		free(symbols->c[i].name);
	for (size_t i = 0; i < symbols->fast_count; i++)
		free(symbols->fast[i]);
	for (size_t i = 0; i < symbols->alias_count; i++)
		free(symbols->aliases[i]);
	free(symbols->functions);
	free(symbols->aliases);
	free(symbols->c);
	free(symbols->traces);
	free(symbols->fast);
	id_map_free(&symbols->by_prototype);
	id_map_free(&symbols->by_id);
	id_map_free(&symbols->id_by_prototype);
	id_map_free(&symbols->by_trace_number);
	id_map_free(&symbols->by_fast_number);
	*symbols = (struct symbols){0};
}

/* ---- Lua functions and traces ------------------------------------------ */

static void set_function(struct symbols *symbols, struct id_map *map,
                         uint64_t key, struct lua_function function)
{
	bool is_new;
	uint32_t *index = id_map_add(
		map, key, 0, (uint32_t)symbols->function_count, &is_new);

	if (is_new) {
		symbols->functions = memory_grow(
			symbols->functions, &symbols->function_capacity,
			++symbols->function_count, sizeof(function));
	} else {
		free(symbols->functions[*index].chunk);
		free(symbols->functions[*index].name);
	}
	symbols->functions[*index] = function;
}

void symbols_add_prototype(struct symbols *symbols, uint64_t address,
                           const char *chunk, size_t chunk_bytes,
                           uint64_t first_line)
{
	set_function(symbols, &symbols->by_prototype, address,
	             (struct lua_function){
			     .address = address,
			     .first_line = first_line,
			     .chunk = memory_copy(chunk, chunk_bytes),
			     .chunk_bytes = chunk_bytes,
			     .name = memory_copy("", 0),
		     });
}

void symbols_add_lua(struct symbols *symbols, uint64_t id,
                     const struct lua_function *function)
{
	struct lua_function copy = *function;
	bool is_new;

	copy.chunk = memory_copy(function->chunk, function->chunk_bytes);
	copy.name = memory_copy(function->name, strlen(function->name));
	set_function(symbols, &symbols->by_id, id, copy);
	if (id <= UINT32_MAX)
		*id_map_add(&symbols->id_by_prototype, function->address, 0,
		            (uint32_t)id, &is_new) = (uint32_t)id;
}

uint32_t symbols_alias(struct symbols *symbols, const char *chunk,
                       size_t chunk_bytes)
{
	if (memchr(chunk, '\n', chunk_bytes) == NULL)
		return 0;
	for (size_t i = 0; i < symbols->alias_count; i++)
		if (strcmp(symbols->aliases[i], chunk) == 0)
			return (uint32_t)i + 1;
	symbols->aliases = memory_grow(
		symbols->aliases, &symbols->alias_capacity,
		symbols->alias_count + 1, sizeof(*symbols->aliases));
	symbols->aliases[symbols->alias_count++] =
		memory_copy(chunk, strlen(chunk));
	return (uint32_t)symbols->alias_count;
}

static const struct lua_function *find_function(const struct symbols *symbols,
                                                const struct id_map *map,
                                                uint64_t key)
{
	const uint32_t *index = id_map_find(map, key, 0);

	return index != NULL ? &symbols->functions[*index] : NULL;
}

const struct lua_function *symbols_find_prototype(const struct symbols *symbols,
                                                  uint64_t address)
{
	return find_function(symbols, &symbols->by_prototype, address);
}

const struct lua_function *symbols_find_lua(const struct symbols *symbols,
                                            uint64_t id)
{
	return find_function(symbols, &symbols->by_id, id);
}

const struct lua_function *symbols_find_named(const struct symbols *symbols,
                                              uint64_t address)
{
	const uint32_t *id = id_map_find(&symbols->id_by_prototype, address, 0);

	return id != NULL ? symbols_find_lua(symbols, *id)
	                  : symbols_find_prototype(symbols, address);
}

void symbols_add_trace(struct symbols *symbols, uint64_t number,
                       const struct trace *trace)
{
	bool is_new;
	uint32_t *index = id_map_add(&symbols->by_trace_number, number, 0,
	                             (uint32_t)symbols->trace_count, &is_new);

	if (is_new)
		symbols->traces =
			memory_grow(symbols->traces, &symbols->trace_capacity,
		                    ++symbols->trace_count, sizeof(*trace));
	symbols->traces[*index] = *trace;
}

const struct trace *symbols_find_trace(const struct symbols *symbols,
                                       uint64_t number)
{
	const uint32_t *index =
		id_map_find(&symbols->by_trace_number, number, 0);

	return index != NULL ? &symbols->traces[*index] : NULL;
}

/* ---- fast functions ---------------------------------------------------- */

void symbols_add_fast(struct symbols *symbols, uint64_t number,
                      const char *name, size_t name_bytes)
{
	bool is_new;
	uint32_t *index = id_map_add(&symbols->by_fast_number, number, 0,
	                             (uint32_t)symbols->fast_count, &is_new);

	if (is_new)
		symbols->fast = memory_grow(
			symbols->fast, &symbols->fast_capacity,
			++symbols->fast_count, sizeof(*symbols->fast));
	else
		free(symbols->fast[*index]);
	symbols->fast[*index] = memory_copy(name, name_bytes);
}

const char *symbols_find_fast(const struct symbols *symbols, uint64_t number)
{
	const uint32_t *index =
		id_map_find(&symbols->by_fast_number, number, 0);

	return index != NULL ? symbols->fast[*index] : fast_name(number);
}

/* ---- C symbols --------------------------------------------------------- */

/* Number of symbols at or below the address. */
static size_t c_symbols_below(const struct symbols *symbols, uint64_t address)
{
	size_t low = 0;
	size_t high = symbols->c_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->c[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void symbols_add_c(struct symbols *symbols, uint64_t address, const char *name,
                   size_t name_bytes)
{
	struct c_symbol symbol = {
		.address = address,
		.name = memory_copy(name, name_bytes),
		.name_bytes = name_bytes,
	};
	size_t at = symbols->c_count;

	if (symbols->c_sorted) {
		at = c_symbols_below(symbols, address);
		if (at > 0 && symbols->c[at - 1].address == address) {
			free(symbols->c[at - 1].name);
			symbols->c[at - 1] = symbol;
			return;
		}
	}
	symbols->c = memory_grow(symbols->c, &symbols->c_capacity,
	                         symbols->c_count + 1, sizeof(symbol));
	memmove(&symbols->c[at + 1], &symbols->c[at],
	        (symbols->c_count - at) * sizeof(symbol));
	symbols->c[at] = symbol;
	symbols->c_count++;
}

/* Symbols of one address keep the order in which they came: name_bytes is not
 * looked at, the place in the array is. */
struct sort_entry {
	struct c_symbol symbol;
	size_t place;
};

static int compare_entries(const void *left, const void *right)
{
	const struct sort_entry *a = left;
	const struct sort_entry *b = right;

	if (a->symbol.address != b->symbol.address)
		return a->symbol.address < b->symbol.address ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static void sort_c_symbols(struct symbols *symbols)
{
	size_t count = symbols->c_count;
	struct sort_entry *entries = memory_zeroed(count, sizeof(*entries));
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		entries[i] = (struct sort_entry){symbols->c[i], i};
	qsort(entries, count, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < count; i++) {
		struct c_symbol symbol = entries[i].symbol;

		if (i + 1 < count &&
		    entries[i + 1].symbol.address == symbol.address)
			free(symbol.name);
		else
			symbols->c[kept++] = symbol;
	}
	symbols->c_count = kept;
	symbols->c_sorted = true;
	free(entries);
}

const struct c_symbol *symbols_find_c(struct symbols *symbols, uint64_t address)
{
	if (!symbols->c_sorted)
		sort_c_symbols(symbols);

	size_t below = c_symbols_below(symbols, address);
	return below > 0 ? &symbols->c[below - 1] : NULL;
}
