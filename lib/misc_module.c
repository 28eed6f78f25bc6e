// SPDX-License-Identifier: MIT
/*
 * Lua API: the modules misc and misc.sysprof. Runs on the thread that calls
 * Lua. Nothing here throws on a caller's mistake: functions return nil, a
 * message and an errno.
 *
 * These loaders live in the library, not in misc.so, so that a host that links
 * the library and its Lua code share the one profile of the process.
 */
#include "lmisclib.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "error.h"
#include "session.h"
#include "stream/frame_name.h"

#define NS_PER_MS           1e6
#define INTERVAL_NS_DEFAULT UINT64_C(10000000)
#define PATH_DEFAULT        "sysprof.bin"
#define OPTION_NAMES        "mode, interval, path, perf"
#define VALUE_BYTES         96 /* of a value in a message */
#define VALUE_SHOWN_BYTES   40 /* of a string in a message */

static int push_failure(lua_State *L, const struct error *error)
{
	lua_pushnil(L);
	lua_pushstring(L, error->text);
	lua_pushinteger(L, error->sys_errno);
	return 3;
}

/* ---- values in messages --------------------------------------------------- */

static void describe_string(char *text, const char *bytes, size_t length)
{
	size_t shown = length < VALUE_SHOWN_BYTES ? length : VALUE_SHOWN_BYTES;
	char *to = text;

	*to++ = '"';
	for (size_t i = 0; i < shown; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		*to++ = isprint(byte) ? (char)byte : '?';
	}
	strcpy(to, shown < length ? "\"..." : "\"");
}

static void describe_number(char *text, lua_Number number)
{
	if (isnan(number))
		strcpy(text, "nan");
	else
		snprintf(text, VALUE_BYTES, "%.14g", number);
}

/* What the caller gave, for a message: "fast" in quotes, 0, true, a table. */
static void describe_value(lua_State *L, int index, char *text)
{
	size_t length;
	const char *bytes;

	switch (lua_type(L, index)) {
	case LUA_TSTRING:
		bytes = lua_tolstring(L, index, &length);
		describe_string(text, bytes, length);
		break;
	case LUA_TNUMBER:
		describe_number(text, lua_tonumber(L, index));
		break;
	case LUA_TBOOLEAN:
		strcpy(text, lua_toboolean(L, index) ? "true" : "false");
		break;
	default:
		snprintf(text, VALUE_BYTES, "a %s", luaL_typename(L, index));
	}
}

/* Ends in ", got VALUE" for the value at the top of the stack. */
static int refuse_value(lua_State *L, struct error *error, const char *accepted)
{
	char value[VALUE_BYTES];

	describe_value(L, -1, value);
	return error_set(error, PROFILE_ERRUSE, EINVAL, "%s, got %s", accepted,
	                 value);
}

/* ---- start ---------------------------------------------------------------- */

static bool is_option_name(const char *name)
{
	static const char *const known[] = {"mode", "interval", "path", "perf"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i]) == 0)
			return true;
	return false;
}

static int check_option_names(lua_State *L, int options, struct error *error)
{
	char name[VALUE_BYTES];

	lua_pushnil(L);
	while (lua_next(L, options) != 0) {
		lua_pop(L, 1);
		if (lua_type(L, -1) == LUA_TSTRING &&
		    is_option_name(lua_tostring(L, -1)))
			continue;
		describe_value(L, -1, name);
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "unknown option %s; the options are %s", name,
		                 OPTION_NAMES);
	}
	return 0;
}

/* The value stays on the stack, so that its string lives on. */
static void push_option(lua_State *L, int options, const char *name)
{
	lua_pushstring(L, name);
	lua_rawget(L, options);
}

static int read_mode(lua_State *L, int options, uint8_t *mode,
                     struct error *error)
{
	static const char letters[] = {
		[LUAM_SYSPROF_DEFAULT] = 'D',
		[LUAM_SYSPROF_LEAF] = 'L',
		[LUAM_SYSPROF_CALLGRAPH] = 'C',
	};
	const char *letter = NULL;
	size_t length = 0;

	push_option(L, options, "mode");
	if (lua_isnil(L, -1)) {
		*mode = LUAM_SYSPROF_DEFAULT;
		return 0;
	}
	if (lua_type(L, -1) == LUA_TSTRING)
		letter = lua_tolstring(L, -1, &length);
	for (size_t i = 0; length == 1 && i < sizeof(letters); i++) {
		if (*letter != letters[i])
			continue;
		*mode = (uint8_t)i;
		return 0;
	}
	return refuse_value(L, error, "mode must be \"D\", \"L\" or \"C\"");
}

static int read_interval(lua_State *L, int options, uint64_t *interval_ns,
                         struct error *error)
{
	lua_Number interval_ms;

	push_option(L, options, "interval");
	if (lua_isnil(L, -1)) {
		*interval_ns = INTERVAL_NS_DEFAULT;
		return 0;
	}
	interval_ms = lua_tonumber(L, -1);
	if (lua_type(L, -1) != LUA_TNUMBER || !isfinite(interval_ms) ||
	    interval_ms <= 0)
		return refuse_value(L, error,
		                    "interval must be a positive number of "
		                    "milliseconds");
	if (interval_ms < (lua_Number)SAMPLE_INTERVAL_NS_MIN / NS_PER_MS ||
	    interval_ms > (lua_Number)SAMPLE_INTERVAL_NS_MAX / NS_PER_MS)
		return refuse_value(L, error,
		                    "interval must be from 0.01 to 3600000 "
		                    "milliseconds");
	*interval_ns = (uint64_t)(interval_ms * NS_PER_MS + 0.5);
	return 0;
}

_Static_assert(SAMPLE_INTERVAL_NS_MIN == UINT64_C(10000) &&
                       SAMPLE_INTERVAL_NS_MAX == UINT64_C(3600000000000),
               "the message of read_interval() tells the limits");

static int read_path(lua_State *L, int options, uint8_t mode, const char **path,
                     struct error *error)
{
	size_t length;

	*path = PATH_DEFAULT;
	if (mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	push_option(L, options, "path");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) != LUA_TSTRING)
		return refuse_value(L, error, "path must be a string");
	*path = lua_tolstring(L, -1, &length);
	if (length == 0 || strlen(*path) != length)
		return refuse_value(L, error,
		                    "path must be the name of a file without "
		                    "NUL bytes");
	return 0;
}

static int read_perf(lua_State *L, int options, bool *perf, struct error *error)
{
	push_option(L, options, "perf");
	*perf = lua_toboolean(L, -1);
	if (lua_isnil(L, -1) || lua_isboolean(L, -1))
		return 0;
	return refuse_value(L, error, "perf must be true or false");
}

/* No option is known to be good before all are read. */
static int read_options(lua_State *L, int table,
                        struct session_options *options, struct error *error)
{
	if (check_option_names(L, table, error) < 0 ||
	    read_mode(L, table, &options->mode, error) < 0 ||
	    read_interval(L, table, &options->interval_ns, error) < 0 ||
	    read_path(L, table, options->mode, &options->path, error) < 0)
		return -1;
	return read_perf(L, table, &options->perf, error);
}

static int sysprof_start(lua_State *L)
{
	struct session_options options = {.first_clock = SAMPLE_CLOCK_PERF};
	struct error error;

	lua_settop(L, 1);
	if (lua_isnil(L, 1)) {
		lua_newtable(L);
		lua_replace(L, 1);
	}
	if (!lua_istable(L, 1)) {
		refuse_value(L, &error,
		             "the options must be a table with any "
		             "of " OPTION_NAMES);
		return push_failure(L, &error);
	}
	if (read_options(L, 1, &options, &error) < 0 ||
	    session_start(L, &options, &error) < 0)
		return push_failure(L, &error);
	lua_pushboolean(L, true);
	return 1;
}

/* ---- stop, report, available ---------------------------------------------- */

static int sysprof_stop(lua_State *L)
{
	struct error error;

	if (session_stop(L, &error) < 0)
		return push_failure(L, &error);
	lua_pushboolean(L, true);
	return 1;
}

/* For the table at the top of the stack. */
static void set_number(lua_State *L, const char *key, uint64_t number)
{
	lua_pushnumber(L, (lua_Number)number);
	lua_setfield(L, -2, key);
}

static void set_states(lua_State *L, const struct sampler_counters *counters)
{
	for (unsigned state = 0; state < STATE_COUNT; state++)
		set_number(L, sample_state_name(state),
		           counters->by_state[state]);
}

static void set_lost(lua_State *L, const struct sampler_counters *counters)
{
	uint64_t total = 0;

	lua_newtable(L);
	for (unsigned reason = 1; reason < LOST_COUNT; reason++) {
		set_number(L, lost_reason_name(reason), counters->lost[reason]);
		total += counters->lost[reason];
	}
	set_number(L, "total", total);
	lua_setfield(L, -2, "lost");
}

static void set_incomplete(lua_State *L,
                           const struct sampler_counters *counters)
{
	char name[FRAME_NAME_BYTES];

	lua_newtable(L);
	for (unsigned marker = 1; marker < MARKER_COUNT; marker++) {
		frame_marker_name(name, marker, 0);
		set_number(L, name, counters->markers[marker]);
	}
	lua_setfield(L, -2, "incomplete");
}

static int sysprof_report(lua_State *L)
{
	struct session_report report;

	session_read_report(&report);
	lua_newtable(L);
	set_number(L, "samples", report.counters.samples);
	set_states(L, &report.counters);
	lua_newtable(L);
	set_states(L, &report.counters);
	lua_setfield(L, -2, "vmstate");
	set_lost(L, &report.counters);
	set_incomplete(L, &report.counters);
	lua_pushboolean(L, report.running);
	lua_setfield(L, -2, "running");
	if (!report.clock)
		return 1;
	lua_pushstring(L, report.clock);
	lua_setfield(L, -2, "clock");
	lua_pushnumber(L, (lua_Number)report.interval_ns / NS_PER_MS);
	lua_setfield(L, -2, "interval");
	return 1;
}

static int sysprof_available(lua_State *L)
{
	struct error error;
	bool available = session_check_available(L, &error) == 0;

	lua_pushboolean(L, available);
	if (available)
		return 1;
	lua_pushstring(L, error.text);
	return 2;
}

/* ---- modules -------------------------------------------------------------- */

static const luaL_Reg sysprof_functions[] = {
	{"start", sysprof_start},
	{"stop", sysprof_stop},
	{"report", sysprof_report},
	{"available", sysprof_available},
	{NULL, NULL},
};

/* Its address is the key of our table of functions in the registry. */
static const char sysprof_key;

static void push_sysprof(lua_State *L)
{
	lua_pushlightuserdata(L, (void *)&sysprof_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_istable(L, -1))
		return;
	lua_pop(L, 1);
	lua_newtable(L);
	for (const luaL_Reg *entry = sysprof_functions; entry->name; entry++) {
		lua_pushcfunction(L, entry->func);
		lua_setfield(L, -2, entry->name);
	}
	lua_pushlightuserdata(L, (void *)&sysprof_key);
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

/* Raw, since strict modules make the read of an unset global an error. */
static void push_raw_field(lua_State *L, int table, const char *key)
{
	lua_pushstring(L, key);
	lua_rawget(L, table);
}

/* From the table at the top of the stack to the one below it, whatever that
 * lacks. */
static void add_missing_functions(lua_State *L)
{
	int from = lua_gettop(L);
	int to = from - 1;

	for (const luaL_Reg *entry = sysprof_functions; entry->name; entry++) {
		push_raw_field(L, to, entry->name);
		if (lua_isnil(L, -1)) {
			lua_pushstring(L, entry->name);
			push_raw_field(L, from, entry->name);
			lua_rawset(L, to);
		}
		lua_pop(L, 1);
	}
}

/* For the table misc at the top of the stack, which may be the host's. */
static void complete_misc(lua_State *L)
{
	int misc = lua_gettop(L);

	push_raw_field(L, misc, "sysprof");
	if (lua_isnil(L, -1)) {
		lua_pushstring(L, "sysprof");
		push_sysprof(L);
		lua_rawset(L, misc);
	} else if (lua_istable(L, -1)) {
		push_sysprof(L);
		add_missing_functions(L);
	}
	lua_settop(L, misc);
}

int luaM_open_misc(lua_State *L)
{
	push_raw_field(L, LUA_GLOBALSINDEX, "misc");
	if (lua_istable(L, -1)) {
		complete_misc(L);
		return 1;
	}
	lua_newtable(L);
	complete_misc(L);
	if (!lua_isnil(L, -2))
		return 1;
	lua_pushstring(L, "misc");
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_GLOBALSINDEX);
	return 1;
}

int luaM_open_misc_sysprof(lua_State *L)
{
	push_sysprof(L);
	return 1;
}
