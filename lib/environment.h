// SPDX-License-Identifier: MIT
/*
 * A profile that the environment asks for, of a program that is not changed: what
 * preload/preload.c and LUA_INIT call. Ordinary code on any thread.
 *
 * The variables are in the table of luajit-sysprof(1). They are ignored in
 * setuid programs.
 */
#ifndef LIB_ENVIRONMENT_H
#define LIB_ENVIRONMENT_H

#include "lmisclib.h"

/*
 * Starts to sample the process, if LUAJIT_SYSPROF_PATH is set and nothing does
 * yet; L is any VM, on its thread. Where that is refused the reason gets into
 * the file PATH.error, and the program goes on.
 */
LUAMISC_API void luaM_sysprof_vm_appears(lua_State *L);

/* The same for LUA_INIT, as a Lua function without results; then does what the
 * user's own LUA_INIT says. */
LUAMISC_API int luaM_sysprof_lua_init(lua_State *L);

/* Completes all dumps: the process is about to end. */
LUAMISC_API void luaM_sysprof_finish(void);

/* Around an execve(2): no signal may be under way to the new program, which
 * would die of it. The second one if the call has failed. */
LUAMISC_API void luaM_sysprof_before_exec(void);
LUAMISC_API void luaM_sysprof_after_exec(void);

#endif
