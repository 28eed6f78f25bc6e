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

#include <stddef.h>

#include "lmisclib.h"
#include "rotation_files.h"

/*
 * Starts to sample the process, if LUAJIT_SYSPROF_PATH is set and nothing does
 * yet; L is any VM, on its thread. Where that is refused the reason gets into
 * the file PATH.error, and the program goes on.
 */
LUAMISC_API void luaM_sysprof_vm_appears(lua_State *L);

/* The same for LUA_INIT, as a Lua function without results; then does what the
 * user's own LUA_INIT says. */
LUAMISC_API int luaM_sysprof_lua_init(lua_State *L);

/*
 * For the agent of `luajit-sysprof record -p`, on a thread of its own: starts to
 * sample all other threads of the process. settings are lines "NAME=VALUE" with the
 * same variables, dump_fd is the caller's descriptor of the dump; of a rotation there
 * is none, and files are whose it is. Returns 0 with some facts in text, or -1 with
 * the reason. The other one ends it, on the same thread; 0 if the dump is whole, with
 * the number of samples in text.
 */
LUAMISC_API int luaM_sysprof_attach(const char *settings, int dump_fd,
                                    const struct rotation_files *files,
                                    char *text, size_t bytes);
LUAMISC_API int luaM_sysprof_detach(char *text, size_t bytes);

/* Completes all dumps: the process is about to end. */
LUAMISC_API void luaM_sysprof_finish(void);

/* Around an execve(2): no signal may be under way to the new program, which
 * would die of it. The second one if the call has failed. */
LUAMISC_API void luaM_sysprof_before_exec(void);
LUAMISC_API void luaM_sysprof_after_exec(void);

#endif
