// SPDX-License-Identifier: MIT
/*
 * Names of Lua functions, read off the definition in the source file, or in the
 * chunk name where that is the source; else the name by which the function was
 * called.
 *
 * Debug information gives a chunk and two lines but no name. Where the file is
 * readable and no younger than the process, the line that defines the function
 * often says it. Rather no name than a wrong one: bytecode may be older than the
 * file, so the functions of the file must begin and end where those that run do,
 * and most of them be called by their names. Runs on the writer thread: it reads
 * files.
 */
#ifndef LIB_FUNCTION_NAMES_H
#define LIB_FUNCTION_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_names; /* function_names.c: caches the files it has read */

struct function_names *function_names_open(void); /* NULL: out of memory */
void function_names_close(struct function_names *names);
size_t function_names_held_bytes(const struct function_names *names);

/* A chunk name of this length may have been cut: CHUNK_NAME_BYTES_MAX of
 * lua_symbols_sig.c. */
#define FUNCTION_NAMES_TEXT_BYTES 1024

/* A Lua function, as its debug information tells. */
struct function_facts {
	const char *chunk; /* raw name: "@file.lua", "=label" or source text */
	size_t chunk_bytes;
	uint32_t first_line; /* 0 for a main chunk, which has no name */
	uint32_t last_line;
	const char *call_name;   /* by which it was called */
	size_t call_name_bytes;  /* 0: not known */
	bool call_name_is_local; /* as in struct call_name */
	bool stripped;           /* no debug information: not even lines */
};

/* Writes the name, terminated, to name (capacity bytes) and returns its length;
 * 0 and an empty string where it cannot be told. */
size_t function_names_find(struct function_names *names,
                           const struct function_facts *function, char *name,
                           size_t capacity);

#endif
