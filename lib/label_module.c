// SPDX-License-Identifier: MIT
/*
 * Lua API: misc.sysprof.label(text) gives the running coroutine a label, until
 * another or nil is given or the coroutine is collected.
 */
#include "label_module.h"

#include <lauxlib.h>

#include "error.h"
#include "labels_sig.h"
#include "lua_options.h"

/* Its address is the key of the table of guards in the registry. */
static const char guards_key;

/*
 * Collected some time after its coroutine: takes the label away. Until then
 * another coroutine may get the address. So its environment is a weak table with
 * the coroutine as its first item, which the collector empties before it gives
 * the address back; the handler looks there.
 */
struct guard {
	uint64_t coroutine;
	uint64_t witness; /* address of the weak table */
	uint64_t serial;  /* of the label that it guards */
};

static int collect_guard(lua_State *L)
{
	const struct guard *guard = lua_touserdata(L, 1);

	if (guard)
		labels_clear(guard->coroutine, guard->serial);
	return 0;
}

/* With room for item_count items; mode is "k" or "v". */
static void push_weak_table(lua_State *L, const char *mode, int item_count)
{
	lua_createtable(L, item_count, 0);
	lua_createtable(L, 0, 1);
	lua_pushstring(L, mode);
	lua_setfield(L, -2, "__mode");
	lua_setmetatable(L, -2);
}

/* Leaves the table of guards on the stack: from coroutines, which it does not
 * keep alive, to their guards. */
static void push_guards(lua_State *L)
{
	lua_pushlightuserdata(L, (void *)&guards_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_istable(L, -1))
		return;
	lua_pop(L, 1);
	push_weak_table(L, "k", 0);
	lua_pushlightuserdata(L, (void *)&guards_key);
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

static void push_new_guard(lua_State *L)
{
	struct guard *guard = lua_newuserdata(L, sizeof(*guard));

	*guard = (struct guard){.coroutine = (uint64_t)L};
	push_weak_table(L, "v", 1);
	lua_pushthread(L);
	lua_rawseti(L, -2, 1);
	guard->witness = (uint64_t)lua_topointer(L, -1);
	lua_setfenv(L, -2);
	if (luaL_newmetatable(L, "luajit-sysprof label")) {
		lua_pushcfunction(L, collect_guard);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
}

/* The guard of the running coroutine, which it has from its first label on. */
static struct guard *own_guard(lua_State *L)
{
	struct guard *guard;

	push_guards(L);
	lua_pushthread(L);
	lua_rawget(L, -2);
	if (lua_isnil(L, -1)) {
		lua_pop(L, 1);
		push_new_guard(L);
		lua_pushthread(L);
		lua_pushvalue(L, -2);
		lua_rawset(L, -4);
	}
	guard = lua_touserdata(L, -1);
	lua_pop(L, 2);
	return guard;
}

int label_coroutine(lua_State *L)
{
	struct error error;
	struct guard *guard;
	size_t bytes;
	const char *text;

	lua_settop(L, 1);
	if (lua_isnil(L, 1)) {
		labels_clear((uint64_t)L, 0);
	} else if (lua_type(L, 1) != LUA_TSTRING) {
		lua_options_refuse(L, &error,
		                   "label must be a string, or nil for none");
		return lua_options_push_failure(L, &error);
	} else {
		text = lua_tolstring(L, 1, &bytes);
		guard = own_guard(L);
		if (labels_set((uint64_t)L, guard->witness, text, bytes,
		               &guard->serial, &error))
			return lua_options_push_failure(L, &error);
	}
	lua_pushboolean(L, 1);
	return 1;
}
