// SPDX-License-Identifier: MIT
/*
 * Names of the fast functions, read off the libraries of the VM at hand: their
 * numbers differ from build to build. Calls Lua API functions; not for the
 * signal handler.
 */
#include "vm.h"

#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "object_sig.h"

#define STACK_SLOTS 10

/* Entries of package.loaded, the longest names last: a function in several
 * tables gets the first name found. */
static const char *const libraries[] = {
	"_G",        "string",      "table",       "math",
	"io",        "os",          "debug",       "bit",
	"coroutine", "package",     "jit",         "ffi",
	"jit.util",  "jit.opt",     "jit.profile", "string.buffer",
	"table.new", "table.clear",
};

struct reading {
	const struct vm *vm;
	struct fast_names *names;
};

static void set_name(struct fast_names *names, uint8_t number,
                     const char *library, const char *key)
{
	char *name = names->name[number];

	if (name[0])
		return;
	if (library)
		snprintf(name, FAST_NAME_BYTES_MAX, "%s.%s", library, key);
	else
		snprintf(name, FAST_NAME_BYTES_MAX, "%s", key);
	if (number >= names->count)
		names->count = number + 1u;
}

/* Names the function on top of the Lua stack, if it is a fast function. */
static void name_function(struct reading *reading, lua_State *L,
                          const char *library, const char *key)
{
	struct lua_function function;

	if (lua_isfunction(L, -1) &&
	    lua_function_read(reading->vm->layout,
	                      (uint64_t)lua_topointer(L, -1), &function) &&
	    function.id > FUNCTION_C)
		set_name(reading->names, function.id, library, key);
}

/* Names the functions in the table on top of the Lua stack. */
static void name_members(struct reading *reading, lua_State *L,
                         const char *library)
{
	if (!lua_istable(L, -1))
		return;
	lua_pushnil(L);
	while (lua_next(L, -2)) {
		/* lua_tostring() would change a number in place. */
		if (lua_type(L, -2) == LUA_TSTRING)
			name_function(reading, L, library, lua_tostring(L, -2));
		lua_pop(L, 1);
	}
}

/* Calls library.key(argument), whose first result is an iterator or the like:
 * functions that no table holds. */
static void name_result(struct reading *reading, lua_State *L,
                        const char *library, const char *key, const char *name)
{
	int top = lua_gettop(L);
	int argument_count = 1;

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, library);
	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, key);
		if (!strcmp(key, "ipairs") || !strcmp(key, "pairs")) {
			lua_newtable(L);
		} else if (!strcmp(key, "wrap")) {
			lua_getfield(L, -2, "yield");
		} else {
			lua_pushliteral(L, "");
			lua_pushliteral(L, "");
			argument_count = 2;
		}
		if (!lua_pcall(L, argument_count, 1, 0))
			name_function(reading, L, NULL, name);
	}
	lua_settop(L, top);
}

/* Metamethods of C data and C libraries. Only if the program has loaded the
 * FFI: it would not be nice to do it for it. */
static void name_ffi_metamethods(struct reading *reading, lua_State *L)
{
	int top = lua_gettop(L);

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "ffi");
	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, "C");
		if (lua_getmetatable(L, -1))
			name_members(reading, L, "ffi.clib");
		lua_getfield(L, top + 2, "typeof");
		lua_pushliteral(L, "int");
		if (!lua_pcall(L, 1, 1, 0) && lua_getmetatable(L, -1))
			name_members(reading, L, "ffi.meta");
	}
	lua_settop(L, top);
}

static int read_names(lua_State *L)
{
	struct reading *reading = lua_touserdata(L, 1);
	size_t i;

	luaL_checkstack(L, STACK_SLOTS, "names of library functions");
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	for (i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		lua_getfield(L, -1, libraries[i]);
		name_members(reading, L, i ? libraries[i] : NULL);
		lua_pop(L, 1);
	}
	/* Methods of files; io.lines and io.open are named above. */
	luaL_getmetatable(L, "FILE*");
	name_members(reading, L, "file");
	name_ffi_metamethods(reading, L);
	name_result(reading, L, "_G", "ipairs", "ipairs iterator");
	name_result(reading, L, "string", "gmatch", "string.gmatch iterator");
	name_result(reading, L, "coroutine", "wrap", "coroutine.wrap function");
	return 0;
}

void vm_read_fast_names(const struct vm *vm, lua_State *L,
                        struct fast_names *names)
{
	struct reading reading = {vm, names};

	memset(names, 0, sizeof(*names));
	if (load_faults_catch(NULL))
		return;
	/* Without memory for it the names found so far have to do. */
	if (lua_cpcall(L, read_names, &reading))
		lua_pop(L, 1);
	load_faults_release();
}
