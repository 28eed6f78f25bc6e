// SPDX-License-Identifier: MIT
/*
 * Lua API: misc.memprof. Runs on the thread that calls Lua. Nothing here throws
 * on a caller's mistake: functions return nil, a message and an errno.
 */
#include "memprof_module.h"

#include "error.h"
#include "lua_options.h"
#include "memprof.h"

#define PATH_DEFAULT     "memprof.bin"
#define SAMPLE_BYTES_MAX 1e15 /* fits a double and a uint64_t exactly */

static const char *const option_names[] = {"path", "sample_bytes", "stacks",
                                           NULL};

static int read_sample_bytes(lua_State *L, uint64_t *sample_bytes,
                             struct error *error)
{
	lua_Number number;

	lua_options_push(L, 1, "sample_bytes");
	*sample_bytes = 0;
	if (lua_isnil(L, -1))
		return 0;
	number = lua_tonumber(L, -1);
	if (lua_type(L, -1) != LUA_TNUMBER ||
	    !(number >= 1 && number <= SAMPLE_BYTES_MAX))
		return lua_options_refuse(
			L, error,
			"sample_bytes must be a number from 1 "
			"to 1e15, the bytes from one event to "
			"the next on average");
	*sample_bytes = (uint64_t)number;
	return 0;
}

static int read_table(lua_State *L, struct memprof_options *options,
                      struct error *error)
{
	if (lua_options_check_names(L, 1, option_names, error) < 0)
		return -1;
	lua_options_push(L, 1, "path");
	if (lua_options_read_path(L, PATH_DEFAULT, &options->path, error) < 0 ||
	    read_sample_bytes(L, &options->sample_bytes, error) < 0)
		return -1;
	return lua_options_read_flag(L, 1, "stacks", &options->stacks, error);
}

static int read_options(lua_State *L, struct memprof_options *options,
                        struct error *error)
{
	switch (lua_type(L, 1)) {
	case LUA_TNIL:
	case LUA_TSTRING:
		return lua_options_read_path(L, PATH_DEFAULT, &options->path,
		                             error);
	case LUA_TTABLE:
		return read_table(L, options, error);
	}
	return lua_options_refuse(
		L, error,
		"the argument must be the path of the dump, or "
		"a table with any of path, sample_bytes, "
		"stacks");
}

static int start(lua_State *L)
{
	struct memprof_options options = {.path = PATH_DEFAULT};
	struct error error;

	lua_settop(L, 1);
	if (read_options(L, &options, &error) < 0 ||
	    memprof_start(L, &options, &error) < 0)
		return lua_options_push_failure(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

static int stop(lua_State *L)
{
	struct error error;

	if (memprof_stop(L, &error) < 0)
		return lua_options_push_failure(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

static int available(lua_State *L)
{
	struct error error;
	int failed = memprof_check_available(L, &error) < 0;

	lua_pushboolean(L, !failed);
	if (!failed)
		return 1;
	lua_pushstring(L, error.text);
	return 2;
}

const luaL_Reg memprof_functions[] = {
	{"start", start},
	{"stop", stop},
	{"available", available},
	{NULL, NULL},
};
