// SPDX-License-Identifier: MIT
/*
 * The options of misc.sysprof.start(): from a Lua table into a struct. Strings in
 * the struct live as long as they stay on the Lua stack.
 */
#ifndef LIB_SYSPROF_OPTIONS_H
#define LIB_SYSPROF_OPTIONS_H

#include <lua.h>

#include "error.h"
#include "session.h"

/* 0, or -1 with the option, what was got and what is accepted in *error. */
int sysprof_read_options(lua_State *L, int table,
                         struct session_options *options, struct error *error);

#endif
