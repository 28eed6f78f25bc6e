// SPDX-License-Identifier: MIT
/*
 * Options of the Lua API: a table with known names, and messages that say what
 * was got and what is accepted. Nothing here throws on a caller's mistake.
 */
#ifndef LIB_LUA_OPTIONS_H
#define LIB_LUA_OPTIONS_H

#include <stdbool.h>

#include <lua.h>

#include "error.h"

/* nil, the message, the errno: what a function returns that refuses. */
int lua_options_push_failure(lua_State *L, const struct error *error);

/* For a value at the top of the stack: "accepted, got VALUE". Returns -1. */
int lua_options_refuse(lua_State *L, struct error *error, const char *accepted);

/* Are all keys of the table among the names (ended by NULL)? */
int lua_options_check_names(lua_State *L, int table, const char *const *names,
                            struct error *error);

/* The value stays on the stack, so that its string lives on. */
void lua_options_push(lua_State *L, int table, const char *name);

/* A file name from the value at the top of the stack, or from the default where
 * that is nil. */
int lua_options_read_path(lua_State *L, const char *default_path,
                          const char **path, struct error *error);
/* true or false; nil is false. */
int lua_options_read_flag(lua_State *L, int table, const char *name, bool *flag,
                          struct error *error);

#endif
