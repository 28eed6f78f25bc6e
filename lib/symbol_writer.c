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

struct symbol_writer {
	struct sysprof_encoder *encoder;
	struct function_names *function_names;
	struct host_symbols *host_symbols;
	struct lua_symbol_entry *lua_symbols; /* by id */
	size_t lua_symbol_capacity;
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
	free(symbols->lua_symbols);
	free(symbols);
}

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

/* False: out of memory, the symbol has no entry then. */
static bool remember_lua_symbol(struct symbol_writer *symbols,
                                const struct lua_symbol *symbol)
{
	size_t capacity = symbols->lua_symbol_capacity;
	struct lua_symbol_entry *grown;

	while (capacity <= symbol->id)
		capacity = capacity > 0 ? 2 * capacity : 1024;
	if (capacity > symbols->lua_symbol_capacity) {
		grown = realloc(symbols->lua_symbols,
		                capacity * sizeof(*grown));
		if (!grown)
			return false;
		memset(grown + symbols->lua_symbol_capacity, 0,
		       (capacity - symbols->lua_symbol_capacity) *
		               sizeof(*grown));
		symbols->lua_symbols = grown;
		symbols->lua_symbol_capacity = capacity;
	}
	symbols->lua_symbols[symbol->id] = (struct lua_symbol_entry){
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
	};
	return true;
}

struct lua_symbol_entry
symbol_writer_find_lua(const struct symbol_writer *symbols, uint64_t id)
{
	if (id < symbols->lua_symbol_capacity)
		return symbols->lua_symbols[id];
	return (struct lua_symbol_entry){0};
}

size_t symbol_writer_lua(struct symbol_writer *symbols,
                         const struct lua_symbol *symbol, char *function)
{
	size_t function_bytes = function_names_find(
		symbols->function_names, symbol->chunk, symbol->chunk_bytes,
		symbol->first_line, function, FUNCTION_NAME_BYTES);
	struct lua_symbol_facts facts = {
		.id = symbol->id,
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
		.line_count = symbol->line_count,
		.chunk = symbol->chunk,
		.chunk_bytes = symbol->chunk_bytes,
		.function = function,
	};

	if (!remember_lua_symbol(symbols, symbol))
		return function_bytes;
	sysprof_write_proto(symbols->encoder, symbol->prototype, symbol->chunk,
	                    symbol->chunk_bytes, symbol->first_line);
	sysprof_write_lua_symbol(symbols->encoder, &facts);
	return function_bytes;
}

void symbol_writer_trace(struct symbol_writer *symbols,
                         const struct trace_symbol *trace)
{
	struct lua_symbol_entry symbol =
		symbol_writer_find_lua(symbols, trace->lua_symbol);

	sysprof_write_trace(symbols->encoder, trace->trace_number,
	                    symbol.prototype, trace->start_line);
	sysprof_write_trace_code(symbols->encoder, trace->trace_number,
	                         trace->code, trace->code_bytes);
}

void symbol_writer_fast(struct symbol_writer *symbols,
                        const struct fast_names *names)
{
	for (uint32_t i = 0; i < names->count && i < FAST_FUNCTIONS_MAX; i++)
		if (names->name[i][0])
			sysprof_write_fast_symbol(symbols->encoder, i,
			                          names->name[i]);
}
