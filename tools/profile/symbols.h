// SPDX-License-Identifier: MIT
/*
 * Symbols of a dump as they stand at the record that is being read: addresses
 * and trace numbers are used again, so a later symbol replaces an earlier one.
 */
#ifndef PROFILE_SYMBOLS_H
#define PROFILE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump_reader.h"
#include "id_map.h"

/* Lua function, by prototype address or by id of the extension. */
struct lua_function {
	uint64_t address;    /* of the prototype */
	uint64_t first_line; /* as in the dump */
	char *chunk;         /* raw chunk name */
	size_t chunk_bytes;
	char *name; /* of the function, terminated; empty: not known */
};

struct c_symbol {
	uint64_t address;
	char *name; /* terminated */
	size_t name_bytes;
};

struct trace {
	uint64_t prototype;
	uint64_t start_line;
};

struct symbols {
	struct lua_function *functions; /* of both maps */
	size_t function_count;
	size_t function_capacity;
	struct id_map by_prototype;    /* address -> index of functions */
	struct id_map by_id;           /* id of the extension -> the same */
	struct id_map id_by_prototype; /* the last one with this address */

	struct c_symbol *c; /* see c_sorted */
	size_t c_count;
	size_t c_capacity;
	bool c_sorted; /* by address, each address once; else as they came */

	struct trace *traces;
	size_t trace_count;
	size_t trace_capacity;
	struct id_map by_trace_number;

	char **fast; /* names of the extension */
	size_t fast_count;
	size_t fast_capacity;
	struct id_map by_fast_number;

	char **aliases; /* chunk names that symbols_alias() has seen */
	size_t alias_count;
	size_t alias_capacity;
};

/* Zero a struct symbols before its first use. */
void symbols_free(struct symbols *symbols);

void symbols_add_prototype(struct symbols *symbols, uint64_t address,
                           const char *chunk, size_t chunk_bytes,
                           uint64_t first_line);
void symbols_add_lua(struct symbols *symbols, uint64_t id,
                     const struct lua_function *function);
void symbols_add_c(struct symbols *symbols, uint64_t address, const char *name,
                   size_t name_bytes);
void symbols_add_trace(struct symbols *symbols, uint64_t number,
                       const struct trace *trace);
void symbols_add_fast(struct symbols *symbols, uint64_t number,
                      const char *name, size_t name_bytes);

/* NULL where there is none. Valid until the next symbol is added. */
const struct lua_function *symbols_find_prototype(const struct symbols *symbols,
                                                  uint64_t address);
const struct lua_function *symbols_find_lua(const struct symbols *symbols,
                                            uint64_t id);
/* By the address of its prototype; with its name, where the extension has it. */
const struct lua_function *symbols_find_named(const struct symbols *symbols,
                                              uint64_t address);
const struct trace *symbols_find_trace(const struct symbols *symbols,
                                       uint64_t number);
/* Number by which the old parser calls a chunk name of several lines, counted
 * from 1 in the order in which they are first asked for; 0 for other names. */
uint32_t symbols_alias(struct symbols *symbols, const char *chunk,
                       size_t chunk_bytes);
/* The nearest symbol at or below the address: the dump has no sizes. */
const struct c_symbol *symbols_find_c(struct symbols *symbols,
                                      uint64_t address);
/* From the extension, else from the built-in table. */
const char *symbols_find_fast(const struct symbols *symbols, uint64_t number);

#endif
