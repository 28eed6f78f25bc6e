// SPDX-License-Identifier: MIT
/*
 * A program that embeds LuaJIT, for tests: runs a Lua file with arguments.
 *
 * usage: other_host [-joff|-jon] FILE [ARGUMENT]...
 *
 * With -DUNKNOWN_BUILD what the API says of the allocator is not what the VM has,
 * as if its structures were laid out in another way.
 */
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>

#ifdef UNKNOWN_BUILD
/* A module finds this one before LuaJIT's. */
lua_Alloc lua_getallocf(lua_State *L, void **data)
{
	(void)L;
	*data = NULL;
	return NULL;
}
#endif

static int run(lua_State *L, int count, char **arguments)
{
	int i;

	lua_createtable(L, count, 1);
	for (i = 0; i < count; i++) {
		lua_pushstring(L, arguments[i]);
		lua_rawseti(L, -2, i);
	}
	lua_setglobal(L, "arg");
	if (luaL_loadfile(L, arguments[0]))
		return 1;
	for (i = 1; i < count; i++)
		lua_pushstring(L, arguments[i]);
	return lua_pcall(L, count - 1, 0, 0);
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int first = argc > 1 && !strncmp(argv[1], "-j", 2) ? 2 : 1;
	int failed;

	if (!L || argc <= first)
		return 2;
	luaL_openlibs(L);
	if (first == 2 && !strcmp(argv[1], "-joff"))
		luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
	failed = run(L, argc - first, argv + first);
	if (failed)
		fprintf(stderr, "other_host: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return failed ? 1 : 0;
}
