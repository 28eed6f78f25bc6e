// SPDX-License-Identifier: MIT
/*
 * Names of Lua functions, read off the definition in the source file, or in the
 * chunk name where that is the source.
 *
 * Debug information gives a chunk and a first line but no name. Where the file
 * is readable and no younger than the process, the line that defines the
 * function often says it. Rather no name than a wrong one. Runs on the writer
 * thread: it reads files.
 */
#ifndef LIB_FUNCTION_NAMES_H
#define LIB_FUNCTION_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct function_names; /* function_names.c: caches the files it has read */

struct function_names *function_names_open(void); /* NULL: out of memory */
void function_names_close(struct function_names *names);
size_t function_names_held_bytes(const struct function_names *names);

/* A chunk name of this length may have been cut: CHUNK_NAME_BYTES_MAX of
 * lua_symbols_sig.c. */
#define FUNCTION_NAMES_TEXT_BYTES 1024

/* Writes the name, terminated, to name (capacity bytes) and returns its length;
 * 0 and an empty string where it cannot be told. chunk is the raw chunk name
 * ("@file.lua", "=label" or source text). */
size_t function_names_find(struct function_names *names, const char *chunk,
                           size_t chunk_bytes, uint32_t first_line, char *name,
                           size_t capacity);

#endif
