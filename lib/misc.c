// SPDX-License-Identifier: MIT
/*
 * misc.so: what `require "misc"` and its submodules load. Holds no
 * state and no code of its own, so that it may be unloaded with its VM while
 * the library stays.
 */
#include "lmisclib.h"

LUAMISC_API int luaopen_misc(lua_State *L);
LUAMISC_API int luaopen_misc_sysprof(lua_State *L);
LUAMISC_API int luaopen_misc_memprof(lua_State *L);

int luaopen_misc(lua_State *L)
{
	return luaM_open_misc(L);
}

int luaopen_misc_sysprof(lua_State *L)
{
	return luaM_open_misc_sysprof(L);
}

int luaopen_misc_memprof(lua_State *L)
{
	return luaM_open_misc_memprof(L);
}
