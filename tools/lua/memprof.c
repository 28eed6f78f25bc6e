// SPDX-License-Identifier: MIT
/*
 * Lua module memprof: reads memory profiles.
 *
 *   memprof(arg), memprof(path)   as the program luajit-parse-memprof
 *   memprof.parse(path, options)  events and balances by location
 *   memprof.heap_delta(profile)   the balance of each location
 */
#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>

#include "command.h"
#include "memory/memory_load.h"
#include "memprof_command.h"

__attribute__((visibility("default"))) int luaopen_memprof(lua_State *L);

/* ---- tables -------------------------------------------------------------------- */

static void set_location(lua_State *L, const struct memory_profile *memory,
                         uint32_t location)
{
	char name[MEMORY_NAME_BYTES];

	lua_command_set_string(L, "location",
	                       memory_location_name(memory, location, name));
}

static void push_owners(lua_State *L, const struct memory_profile *memory,
                        uint32_t location, enum allocation_section section)
{
	const struct allocations *allocations = &memory->allocations;
	int count = 0;

	lua_newtable(L);
	for (size_t i = 0; i < allocations->override_count; i++) {
		const struct allocation_override *override =
			&allocations->overrides[i];

		if (override->location != location ||
		    override->section != section)
			continue;
		lua_createtable(L, 0, 3);
		set_location(L, memory, override->owner);
		lua_command_set_number(L, "event_count", override->event_count);
		lua_command_set_number(L, "free_bytes", override->free_bytes);
		lua_rawseti(L, -2, ++count);
	}
}

static void push_section(lua_State *L, const struct memory_profile *memory,
                         enum allocation_section section)
{
	const struct allocations *allocations = &memory->allocations;
	int count = 0;

	lua_newtable(L);
	for (uint32_t i = 1; i < allocations->location_count; i++) {
		const struct allocation_totals *totals =
			&allocations->locations[i].events[section];

		if (!(totals->event_count > 0) && !(totals->free_bytes > 0))
			continue;
		lua_createtable(L, 0, 5);
		set_location(L, memory, i);
		lua_command_set_number(L, "event_count", totals->event_count);
		lua_command_set_number(L, "alloc_bytes", totals->alloc_bytes);
		lua_command_set_number(L, "free_bytes", totals->free_bytes);
		if (section != SECTION_ALLOC) {
			push_owners(L, memory, i, section);
			lua_setfield(L, -2, "owners");
		}
		lua_rawseti(L, -2, ++count);
	}
}

static void set_balance(lua_State *L, const struct allocation_balance *balance)
{
	lua_command_set_number(L, "held_bytes", balance->held_bytes);
	lua_command_set_number(L, "alloc_count", balance->alloc_count);
	lua_command_set_number(L, "free_count", balance->free_count);
}

static void push_heap(lua_State *L, const struct memory_profile *memory)
{
	const struct allocations *allocations = &memory->allocations;
	int count = 0;

	lua_newtable(L);
	for (uint32_t i = 1; i < allocations->location_count; i++) {
		const struct allocation_balance *balance =
			&allocations->locations[i].balance;

		if (!(balance->alloc_count > 0))
			continue;
		lua_createtable(L, 0, 4);
		set_location(L, memory, i);
		set_balance(L, balance);
		lua_rawseti(L, -2, ++count);
	}
}

static void push_profile(lua_State *L, const struct memory_profile *memory)
{
	const struct allocations *allocations = &memory->allocations;

	lua_createtable(L, 0, 10);
	push_section(L, memory, SECTION_ALLOC);
	lua_setfield(L, -2, "alloc");
	push_section(L, memory, SECTION_REALLOC);
	lua_setfield(L, -2, "realloc");
	push_section(L, memory, SECTION_FREE);
	lua_setfield(L, -2, "free");
	push_heap(L, memory);
	lua_setfield(L, -2, "heap");
	lua_command_set_number(L, "event_count",
	                       (double)allocations->event_count);
	lua_command_set_number(L, "lost_count",
	                       (double)memory_lost_count(memory));
	lua_command_set_number(L, "sample_bytes",
	                       (double)allocations->sample_bytes);
	lua_command_set_number(L, "before_count", allocations->before_count);
	lua_command_set_number(L, "before_bytes", allocations->before_bytes);
	lua_pushboolean(L, memory->complete);
	lua_setfield(L, -2, "complete");
}

/* ---- parse ------------------------------------------------------------------- */

static int collect_memory(lua_State *L)
{
	struct memory_profile **memory = lua_touserdata(L, 1);

	if (*memory == NULL)
		return 0;
	memory_close(*memory);
	free(*memory);
	*memory = NULL;
	return 0;
}

/* Closes the profile also where Lua runs out of memory. */
static struct memory_profile **push_holder(lua_State *L)
{
	struct memory_profile **holder = lua_newuserdata(L, sizeof(*holder));

	*holder = NULL;
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, collect_memory);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	return holder;
}

struct load_request {
	struct memory_profile *memory;
	FILE *file;
	const char *path;
	struct memory_options options;
};

static void load(void *context)
{
	struct load_request *request = context;

	memory_load(request->memory, request->file, request->path,
	            &request->options);
}

static bool read_traces(lua_State *L)
{
	bool traces = false;

	if (lua_istable(L, 2)) {
		lua_getfield(L, 2, "traces");
		traces = lua_toboolean(L, -1);
		lua_pop(L, 1);
	}
	return traces;
}

static int parse(lua_State *L)
{
	struct memory_profile **holder;
	struct load_request request = {.options.traces = false};
	bool partial, loaded;

	lua_settop(L, 2);
	holder = push_holder(L);
	request.options.traces = read_traces(L);
	request.file = lua_command_open(L, &request.path, &partial);
	if (request.file == NULL)
		return 2;
	request.memory = calloc(1, sizeof(*request.memory));
	loaded = request.memory != NULL && lua_command_load(load, &request);
	fclose(request.file);
	if (!loaded)
		return luaL_error(L, "out of memory for %s", request.path);
	*holder = request.memory;
	if (!request.memory->complete && !partial) {
		lua_pushnil(L);
		lua_pushstring(L, request.memory->error);
		return 2;
	}
	push_profile(L, request.memory);
	if (request.memory->complete)
		return 1;
	lua_pushstring(L, request.memory->error);
	return 2;
}

/* ---- heap_delta --------------------------------------------------------------- */

/* Adds field key of the table at from to the one at to. */
static void add_field(lua_State *L, int to, int from, const char *key)
{
	lua_getfield(L, to, key);
	lua_getfield(L, from, key);
	lua_pushnumber(L, lua_tonumber(L, -2) + lua_tonumber(L, -1));
	lua_setfield(L, to, key);
	lua_pop(L, 2);
}

static int heap_delta(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	lua_getfield(L, 1, "heap");
	luaL_argcheck(L, lua_istable(L, 2), 1, "a profile of memprof.parse");
	lua_newtable(L);
	for (int i = 1;; i++) {
		lua_rawgeti(L, 2, i);
		if (!lua_istable(L, 4))
			break;
		lua_getfield(L, 4, "location");
		lua_pushvalue(L, 5);
		lua_rawget(L, 3);
		if (lua_isnil(L, 6)) {
			lua_createtable(L, 0, 3);
			lua_replace(L, 6);
			lua_pushvalue(L, 5);
			lua_pushvalue(L, 6);
			lua_rawset(L, 3);
		}
		add_field(L, 6, 4, "held_bytes");
		add_field(L, 6, 4, "alloc_count");
		add_field(L, 6, 4, "free_count");
		lua_settop(L, 3);
	}
	lua_settop(L, 3);
	return 1;
}

/* ---- the module ---------------------------------------------------------------- */

static int call(lua_State *L)
{
	return lua_command_run(L, memprof_command, "luajit-parse-memprof");
}

int luaopen_memprof(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"parse", parse},
		{"heap_delta", heap_delta},
		{NULL, NULL},
	};

	lua_createtable(L, 0, 2);
	for (const luaL_Reg *entry = functions; entry->name; entry++) {
		lua_pushcfunction(L, entry->func);
		lua_setfield(L, -2, entry->name);
	}
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, call);
	lua_setfield(L, -2, "__call");
	lua_setmetatable(L, -2);
	return 1;
}
