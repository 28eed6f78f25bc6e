// SPDX-License-Identifier: MIT
/* Symbol writer; see symbol_writer.h. On the writer thread. */
#include "symbol_writer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "function_names.h"
#include "lmisclib.h"
#include "host/host_symbols.h"
#include "vm/code.h"

/* Addresses whose symbol is in the stream. A slot that is taken over only
 * costs a repeated record. */
#define SEEN_BITS 15

struct seen_addresses {
	uint64_t slots[1u << SEEN_BITS]; /* address, 0: free */
};

/* Of the names of Lua functions for dumps to come. The oldest go: a function
 * that was not described for so long hardly runs any more. */
#define KEPT_BYTES_MAX ((size_t)16 << 20)

/* What a dump says of a Lua function. */
struct kept_symbol {
	struct lua_symbol *symbol; /* a copy, behind this */
	size_t bytes;              /* of it all */
	char function[];           /* its name, terminated; then the copy */
};

/* Functions that are remembered: those that were described last. What is older has
 * its name in the dump, but not in the records of the known format. */
#define REMEMBERED_MAX ((size_t)1 << 20)

struct remembered_symbol {
	uint32_t id; /* whose place it is now, 0: nobody's */
	struct lua_symbol_entry entry;
	uint32_t dump;            /* the last one that it was written to */
	struct kept_symbol *kept; /* NULL: not, or not any more */
};

struct symbol_writer {
	struct sysprof_encoder *encoder;
	struct function_names *function_names;
	struct host_symbols *host_symbols;
	struct remembered_symbol *lua_symbols; /* by id modulo capacity */
	size_t lua_symbol_capacity;
	bool keeps;
	uint32_t dump; /* number of the one that is being written */
	size_t kept_bytes;
	uint32_t kept_oldest;        /* ids below have none */
	struct trace_symbol *traces; /* by number, 0: not known; if keeps */
	size_t trace_capacity;
	struct seen_addresses seen_functions; /* their start */
	struct seen_addresses seen_addresses;
};

struct symbol_writer *symbol_writer_open(struct sysprof_encoder *encoder,
                                         struct error *error)
{
	struct symbol_writer *symbols = calloc(1, sizeof(*symbols));

	if (symbols) {
		symbols->encoder = encoder;
		symbols->function_names = function_names_open();
	}
	if (!symbols || !symbols->function_names) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the names of functions");
		symbol_writer_close(symbols);
		return NULL;
	}
	symbols->host_symbols = host_symbols_open(error);
	if (!symbols->host_symbols) {
		symbol_writer_close(symbols);
		return NULL;
	}
	return symbols;
}

void symbol_writer_close(struct symbol_writer *symbols)
{
	if (!symbols)
		return;
	host_symbols_close(symbols->host_symbols);
	function_names_close(symbols->function_names);
	for (size_t i = 0; i < symbols->lua_symbol_capacity; i++)
		free(symbols->lua_symbols[i].kept);
	free(symbols->lua_symbols);
	free(symbols->traces);
	free(symbols);
}

void symbol_writer_keep(struct symbol_writer *symbols)
{
	symbols->keeps = true;
}

/* ---- native functions ------------------------------------------------------ */

/* True if the address was there already. */
static bool seen_before(struct seen_addresses *seen, uint64_t address)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t *slot = &seen->slots[hash >> (64 - SEEN_BITS)];

	if (*slot == address)
		return true;
	*slot = address;
	return false;
}

void symbol_writer_native(struct symbol_writer *symbols, uint64_t address)
{
	struct host_symbol symbol;
	const char *name;

	if (address == 0 || seen_before(&symbols->seen_addresses, address))
		return;
	name = vm_code_name(address, &symbol.start);
	if (!name) {
		host_symbols_find(symbols->host_symbols, address, &symbol);
		name = symbol.name;
	}
	if (seen_before(&symbols->seen_functions, symbol.start))
		return;
	sysprof_write_c_symbol(symbols->encoder, symbol.start, name);
}

/* ---- Lua functions -------------------------------------------------------- */

/* NULL: not described yet, or too long ago. */
static struct remembered_symbol *find_remembered(struct symbol_writer *symbols,
                                                 uint64_t id)
{
	struct remembered_symbol *place;

	if (symbols->lua_symbol_capacity == 0 || id == 0)
		return NULL;
	place = &symbols->lua_symbols[id & (symbols->lua_symbol_capacity - 1)];
	return place->id == id ? place : NULL;
}

static void drop_kept(struct symbol_writer *symbols,
                      struct remembered_symbol *remembered)
{
	if (!remembered->kept)
		return;
	symbols->kept_bytes -= remembered->kept->bytes;
	free(remembered->kept);
	remembered->kept = NULL;
}

static void forget_oldest(struct symbol_writer *symbols)
{
	struct remembered_symbol *oldest =
		find_remembered(symbols, symbols->kept_oldest++);

	if (oldest)
		drop_kept(symbols, oldest);
}

/* NULL where memory is short: later dumps lack the name. */
static struct kept_symbol *copy_symbol(const struct lua_symbol *symbol,
                                       const char *function)
{
	size_t function_bytes = (strlen(function) + 8) & ~(size_t)7;
	size_t bytes = sizeof(struct kept_symbol) + function_bytes +
	               symbol->record.bytes;
	struct kept_symbol *kept = malloc(bytes);

	if (!kept)
		return NULL;
	kept->bytes = bytes;
	strcpy(kept->function, function);
	kept->symbol = (void *)(kept->function + function_bytes);
	memcpy(kept->symbol, symbol, symbol->record.bytes);
	return kept;
}

static void keep_symbol(struct symbol_writer *symbols,
                        struct remembered_symbol *remembered,
                        const struct lua_symbol *symbol, const char *function)
{
	if (!symbols->keeps || remembered->kept)
		return;
	remembered->kept = copy_symbol(symbol, function);
	if (!remembered->kept)
		return;
	symbols->kept_bytes += remembered->kept->bytes;
	if (symbols->kept_oldest > symbol->id)
		symbols->kept_oldest = symbol->id;
	while (symbols->kept_bytes > KEPT_BYTES_MAX)
		forget_oldest(symbols);
}

/* Until there are REMEMBERED_MAX an id never meets another one's place. */
static bool make_room(struct symbol_writer *symbols, uint32_t id)
{
	size_t capacity = symbols->lua_symbol_capacity;
	struct remembered_symbol *grown;

	while (capacity <= id && capacity < REMEMBERED_MAX)
		capacity = capacity > 0 ? 2 * capacity : 1024;
	if (capacity == symbols->lua_symbol_capacity)
		return true;
	grown = realloc(symbols->lua_symbols, capacity * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + symbols->lua_symbol_capacity, 0,
	       (capacity - symbols->lua_symbol_capacity) * sizeof(*grown));
	symbols->lua_symbols = grown;
	symbols->lua_symbol_capacity = capacity;
	return true;
}

/* NULL: out of memory, the symbol has no entry then. */
static struct remembered_symbol *remember(struct symbol_writer *symbols,
                                          const struct lua_symbol *symbol)
{
	struct remembered_symbol *place;

	if (!make_room(symbols, symbol->id))
		return NULL;
	place = &symbols->lua_symbols[symbol->id &
	                              (symbols->lua_symbol_capacity - 1)];
	if (place->id != symbol->id)
		drop_kept(symbols, place);
	place->id = symbol->id;
	place->entry = (struct lua_symbol_entry){
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
	};
	return place;
}

static void write_lua(struct symbol_writer *symbols,
                      const struct lua_symbol *symbol, const char *function)
{
	struct lua_symbol_facts facts = {
		.id = symbol->id,
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
		.line_count = symbol->line_count,
		.chunk = symbol->chunk,
		.chunk_bytes = symbol->chunk_bytes,
		.function = function,
		.prototype_bytes = symbol->prototype_bytes,
	};

	sysprof_write_proto(symbols->encoder, symbol->prototype, symbol->chunk,
	                    symbol->chunk_bytes, symbol->first_line);
	sysprof_write_lua_symbol(symbols->encoder, &facts);
}

size_t symbol_writer_lua(struct symbol_writer *symbols,
                         const struct lua_symbol *symbol, char *function)
{
	const struct function_facts found = {
		.chunk = symbol->chunk,
		.chunk_bytes = symbol->chunk_bytes,
		.first_line = symbol->first_line,
		.last_line = symbol->first_line + symbol->line_count,
		.call_name = symbol->chunk + symbol->chunk_bytes,
		.call_name_bytes = symbol->call_name_bytes,
		.call_name_is_local = symbol->call_name_is_local != 0,
		.stripped = symbol->stripped != 0,
	};
	size_t function_bytes = function_names_find(
		symbols->function_names, &found, function, FUNCTION_NAME_BYTES);
	struct remembered_symbol *remembered = remember(symbols, symbol);

	if (!remembered)
		return function_bytes;
	write_lua(symbols, symbol, function);
	remembered->dump = symbols->dump;
	keep_symbol(symbols, remembered, symbol, function);
	return function_bytes;
}

struct lua_symbol_entry symbol_writer_find_lua(struct symbol_writer *symbols,
                                               uint64_t id)
{
	struct remembered_symbol *remembered = find_remembered(symbols, id);

	if (!remembered)
		return (struct lua_symbol_entry){0};
	if (remembered->kept && remembered->dump != symbols->dump) {
		remembered->dump = symbols->dump;
		write_lua(symbols, remembered->kept->symbol,
		          remembered->kept->function);
	}
	return remembered->entry;
}

/* ---- traces ---------------------------------------------------------------- */

static void write_trace(struct symbol_writer *symbols,
                        const struct trace_symbol *trace)
{
	struct lua_symbol_entry symbol =
		symbol_writer_find_lua(symbols, trace->lua_symbol);

	sysprof_write_trace(symbols->encoder, trace->trace_number,
	                    symbol.prototype, trace->start_line);
	sysprof_write_trace_code(symbols->encoder, trace->trace_number,
	                         trace->code, trace->code_bytes);
}

/* Numbers have 16 bits. Where memory is short later dumps lack the name. */
static void keep_trace(struct symbol_writer *symbols,
                       const struct trace_symbol *trace)
{
	size_t capacity = symbols->trace_capacity;
	struct trace_symbol *grown;

	while (capacity <= trace->trace_number)
		capacity = capacity > 0 ? 2 * capacity : 256;
	if (capacity > symbols->trace_capacity) {
		grown = realloc(symbols->traces, capacity * sizeof(*grown));
		if (!grown)
			return;
		memset(grown + symbols->trace_capacity, 0,
		       (capacity - symbols->trace_capacity) * sizeof(*grown));
		symbols->traces = grown;
		symbols->trace_capacity = capacity;
	}
	symbols->traces[trace->trace_number] = *trace;
}

void symbol_writer_trace(struct symbol_writer *symbols,
                         const struct trace_symbol *trace)
{
	write_trace(symbols, trace);
	if (symbols->keeps && trace->trace_number <= UINT16_MAX)
		keep_trace(symbols, trace);
}

/* ---- a dump and all -------------------------------------------------------- */

void symbol_writer_begin_dump(struct symbol_writer *symbols)
{
	symbols->dump++;
	memset(&symbols->seen_functions, 0, sizeof(symbols->seen_functions));
	memset(&symbols->seen_addresses, 0, sizeof(symbols->seen_addresses));
	for (size_t i = 1; i < symbols->trace_capacity; i++)
		if (symbols->traces[i].trace_number != 0)
			write_trace(symbols, &symbols->traces[i]);
}

size_t symbol_writer_held_bytes(const struct symbol_writer *symbols)
{
	return sizeof(*symbols) + symbols->kept_bytes +
	       symbols->lua_symbol_capacity * sizeof(*symbols->lua_symbols) +
	       symbols->trace_capacity * sizeof(*symbols->traces) +
	       host_symbols_held_bytes(symbols->host_symbols) +
	       function_names_held_bytes(symbols->function_names);
}

void symbol_writer_fast(struct symbol_writer *symbols,
                        const struct fast_names *names)
{
	for (uint32_t i = 0; i < names->count && i < FAST_FUNCTIONS_MAX; i++)
		if (names->name[i][0])
			sysprof_write_fast_symbol(symbols->encoder, i,
			                          names->name[i]);
}
