// SPDX-License-Identifier: MIT
/* What the Lua modules share; see command.h. On the thread that calls Lua. */
#include "command.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>

#include <lauxlib.h>

#include "profile/memory.h"

/* ---- running the command ------------------------------------------------------ */

static int count_arguments(lua_State *L, int index)
{
	if (lua_type(L, index) == LUA_TSTRING)
		return 1;
	luaL_checktype(L, index, LUA_TTABLE);
	return (int)lua_objlen(L, index);
}

/* The strings stay on the stack, so that they live on. */
static void push_arguments(lua_State *L, int index, int count, char **argv)
{
	luaL_checkstack(L, count, "too many arguments");
	for (int i = 1; i <= count; i++) {
		if (lua_type(L, index) == LUA_TSTRING)
			lua_pushvalue(L, index);
		else
			lua_rawgeti(L, index, i);
		if (!lua_isstring(L, -1))
			luaL_error(L, "argument %d must be a string, got a %s",
			           i, luaL_typename(L, -1));
		argv[i] = (char *)(uintptr_t)lua_tostring(L, -1);
	}
}

int lua_command_run(lua_State *L, int (*command)(int argc, char **argv),
                    const char *program)
{
	int count = count_arguments(L, 2); /* 1 is the module itself */
	char **argv = lua_newuserdata(L, ((size_t)count + 2) * sizeof(*argv));

	argv[0] = (char *)(uintptr_t)program;
	push_arguments(L, 2, count, argv);
	argv[count + 1] = NULL;

	int code = command(count + 1, argv);
	fflush(stdout);
	lua_getglobal(L, "os");
	lua_getfield(L, -1, "exit");
	lua_pushinteger(L, code);
	lua_call(L, 1, 0);
	return 0;
}

/* ---- loading a dump ------------------------------------------------------------ */

static __thread jmp_buf *out_of_memory;

static void jump_out(void)
{
	longjmp(*out_of_memory, 1);
}

bool lua_command_load(void (*load)(void *context), void *context)
{
	jmp_buf place;

	out_of_memory = &place;
	memory_on_failure(jump_out);
	if (setjmp(place) == 0) {
		load(context);
		memory_on_failure(NULL);
		return true;
	}
	memory_on_failure(NULL);
	return false;
}

FILE *lua_command_open(lua_State *L, const char **path, bool *partial)
{
	FILE *file;

	*path = luaL_checkstring(L, 1);
	*partial = false;
	if (!lua_isnoneornil(L, 2)) {
		luaL_checktype(L, 2, LUA_TTABLE);
		lua_getfield(L, 2, "partial");
		*partial = lua_toboolean(L, -1);
		lua_pop(L, 1);
	}
	file = fopen(*path, "rbe");
	if (file != NULL)
		return file;
	lua_pushnil(L);
	lua_pushfstring(L, "cannot open %s: %s", *path, strerror(errno));
	return NULL;
}

void lua_command_set_number(lua_State *L, const char *key, double number)
{
	lua_pushnumber(L, number);
	lua_setfield(L, -2, key);
}

void lua_command_set_string(lua_State *L, const char *key, const char *string)
{
	lua_pushstring(L, string);
	lua_setfield(L, -2, key);
}
