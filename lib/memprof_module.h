// SPDX-License-Identifier: MIT
/* Functions of the Lua module misc.memprof, for misc_module.c to install. */
#ifndef LIB_MEMPROF_MODULE_H
#define LIB_MEMPROF_MODULE_H

#include <lauxlib.h>

/* Ends with a row whose name is NULL. */
extern const luaL_Reg memprof_functions[];

#endif
