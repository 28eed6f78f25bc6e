// SPDX-License-Identifier: MIT
/*
 * What the Lua modules memprof and sysprof share: they can be called like the
 * programs, and load dumps without ending the process.
 */
#ifndef LUA_COMMAND_H
#define LUA_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <lua.h>

/* Runs a command with the arguments of a call of the module: a list such as
 * the global arg, or one path. Then ends the process by os.exit, as the command
 * does. */
int lua_command_run(lua_State *L, int (*command)(int argc, char **argv),
                    const char *program);

/* Calls load(context); false if it ran out of memory, and what it had begun is
 * lost then. */
bool lua_command_load(void (*load)(void *context), void *context);

/* parse(path, options): the open dump, or NULL with nil and the reason on the
 * stack. *partial is set from the options. */
FILE *lua_command_open(lua_State *L, const char **path, bool *partial);

/* For the table at the top of the stack. */
void lua_command_set_number(lua_State *L, const char *key, double number);
void lua_command_set_string(lua_State *L, const char *key, const char *string);

#endif
