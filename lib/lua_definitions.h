// SPDX-License-Identifier: MIT
/*
 * Lua definitions: which functions a Lua source text defines, by line.
 *
 * Only what is beyond doubt: one function on its line, with the name, if it has
 * one, in front of it or behind it on the same line. Text that is not Lua has
 * none. Pure text: no files, no VM. Not for the signal handler: it allocates.
 */
#ifndef LIB_LUA_DEFINITIONS_H
#define LIB_LUA_DEFINITIONS_H

#include <stddef.h>
#include <stdint.h>

/* What a text says of a function. */
enum lua_definition_kind {
	LUA_DEFINITION_MISSING, /* there is no such function in it */
	LUA_DEFINITION_UNKNOWN, /* there may be, no more can be told */
	LUA_DEFINITION_UNNAMED,
	LUA_DEFINITION_NAMED,
};

struct lua_definition {
	uint32_t line;      /* from 1, as the VM counts */
	uint32_t last_line; /* of its `end` */
	uint32_t name;      /* offset in names */
	enum lua_definition_kind kind;
};

struct lua_definitions {
	size_t count, capacity;
	struct lua_definition *items; /* ascending by line, one a line */
	size_t names_bytes, names_capacity;
	char *names; /* terminated: "a.b:c", "key" */
};

/* Fills *definitions. 0, or -1 if memory ran out; then there are none. */
int lua_definitions_read(struct lua_definitions *definitions, const char *text,
                         size_t text_bytes);
void lua_definitions_free(struct lua_definitions *definitions);

/* The function that begins and ends in these lines. *name: LUA_DEFINITION_NAMED
 * its name, else NULL. */
enum lua_definition_kind
lua_definitions_find(const struct lua_definitions *definitions, uint32_t line,
                     uint32_t last_line, const char **name);

#endif
