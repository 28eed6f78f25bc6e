// SPDX-License-Identifier: MIT
/*
 * Lua children: a server's first process often runs no Lua itself, but its workers
 * do. Which are they? Reads /proc, changes nothing.
 */
#ifndef COMMANDS_LUA_CHILDREN_H
#define COMMANDS_LUA_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LUA_CHILDREN_BYTES 512

/* Descendants that have a LuaJIT whose functions can be found, without those in
 * known: as -p takes them, "12,13". False: there are none. */
bool lua_children_find(pid_t pid, const pid_t *known, size_t known_count,
                       char list[LUA_CHILDREN_BYTES]);

#endif
