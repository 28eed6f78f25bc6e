// SPDX-License-Identifier: MIT
/*
 * Lua API: the modules misc, misc.sysprof and (memprof_module.c) misc.memprof.
 * Runs on the thread that calls Lua. Nothing here throws on a caller's mistake:
 * functions return nil, a message and an errno.
 *
 * These loaders live in the library, not in misc.so, so that a host that links
 * the library and its Lua code share the one profile of the process.
 */
#include "lmisclib.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include <lauxlib.h>

#include "error.h"
#include "label_module.h"
#include "lua_options.h"
#include "memprof_module.h"
#include "perf_share.h"
#include "session.h"
#include "sysprof_options.h"
#include "stream/frame_name.h"

#define NS_PER_MS                 1e6
#define INTERVAL_NS_DEFAULT       UINT64_C(10000000)
#define OVERHEAD_PERMILLE_DEFAULT 50
#define PATH_DEFAULT              "sysprof.bin"
#define OPTION_NAMES                                                           \
	"mode, interval, clock, kernel, path, rotate, rotate_limit, scope, "   \
	"fork, overhead, signal, perf, perf_dir, perf_unwind"

/* ---- start ---------------------------------------------------------------- */

static const char *const option_names[] = {
	"mode",   "interval",     "clock",    "kernel",      "path",
	"rotate", "rotate_limit", "scope",    "fork",        "overhead",
	"signal", "perf",         "perf_dir", "perf_unwind", NULL};

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

	lua_options_push(L, options, "mode");
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
	return lua_options_refuse(L, error,
	                          "mode must be \"D\", \"L\" or \"C\"");
}

static int read_clock(lua_State *L, int options_index,
                      struct session_options *options, struct error *error)
{
	const char *name;

	options->first_clock = SAMPLE_CLOCK_PERF;
	lua_options_push(L, options_index, "clock");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) != LUA_TSTRING)
		return lua_options_refuse(L, error,
		                          "clock must be \"cpu\", \"wall\" or "
		                          "the name of an event of perf");
	name = lua_tostring(L, -1);
	if (strcmp(name, "cpu") == 0)
		return 0;
	options->first_clock = SAMPLE_CLOCK_WALL_TIMER;
	if (strcmp(name, "wall") == 0)
		return 0;
	options->first_clock = SAMPLE_CLOCK_EVENT;
	return sample_event_find(name, &options->event, error);
}

/* Events are often the kernel's doing, so its frames are tried there unless they are
 * not wanted. */
static int read_kernel(lua_State *L, int options_index,
                       struct session_options *options, struct error *error)
{
	bool wanted;

	if (lua_options_read_flag(L, options_index, "kernel", &wanted, error) <
	    0)
		return -1;
	if (wanted)
		options->kernel = KERNEL_FRAMES_NEEDED;
	else if (lua_isnil(L, -1) && options->mode == LUAM_SYSPROF_CALLGRAPH &&
	         options->first_clock == SAMPLE_CLOCK_EVENT)
		options->kernel = KERNEL_FRAMES_TRIED;
	if (!wanted)
		return 0;
	if (options->mode != LUAM_SYSPROF_CALLGRAPH)
		return error_set(
			error, PROFILE_ERRUSE, EINVAL,
			"kernel needs mode \"C\": others have no native "
			"stacks");
	if (options->first_clock == SAMPLE_CLOCK_WALL_TIMER)
		return error_set(
			error, PROFILE_ERRUSE, EINVAL,
			"kernel needs another clock than \"wall\", whose "
			"timer does not tell what the kernel does; "
			"\"context-switches\" tells what blocks");
	return 0;
}

/* Of a clock that counts events: how many from sample to sample. */
static int read_event_count(lua_State *L, int options_index,
                            struct session_options *options,
                            struct error *error)
{
	lua_Number count;

	options->interval_ns = options->event.count;
	lua_options_push(L, options_index, "interval");
	if (lua_isnil(L, -1))
		return 0;
	count = lua_tonumber(L, -1);
	if (lua_type(L, -1) == LUA_TNUMBER && count >= 1 && count <= 1e15) {
		options->interval_ns = (uint64_t)count;
		return 0;
	}
	return lua_options_refuse(L, error,
	                          "interval must be a number of events from 1 "
	                          "to 1e15 with this clock");
}

static int read_interval(lua_State *L, int options, uint64_t *interval_ns,
                         struct error *error)
{
	lua_Number interval_ms;

	lua_options_push(L, options, "interval");
	if (lua_isnil(L, -1)) {
		*interval_ns = INTERVAL_NS_DEFAULT;
		return 0;
	}
	interval_ms = lua_tonumber(L, -1);
	if (lua_type(L, -1) != LUA_TNUMBER || !isfinite(interval_ms) ||
	    interval_ms <= 0)
		return lua_options_refuse(
			L, error,
			"interval must be a positive number of "
			"milliseconds");
	if (interval_ms < (lua_Number)SAMPLE_INTERVAL_NS_MIN / NS_PER_MS ||
	    interval_ms > (lua_Number)SAMPLE_INTERVAL_NS_MAX / NS_PER_MS)
		return lua_options_refuse(
			L, error,
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
	*path = PATH_DEFAULT;
	if (mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	lua_options_push(L, options, "path");
	return lua_options_read_path(L, PATH_DEFAULT, path, error);
}

static int read_rotate(lua_State *L, int options, uint8_t mode,
                       struct rotation_options *rotation, struct error *error)
{
	const char *when;

	rotation->total_bytes = ROTATION_TOTAL_BYTES_DEFAULT;
	lua_options_push(L, options, "rotate_limit");
	if (!lua_isnil(L, -1) &&
	    (lua_type(L, -1) != LUA_TSTRING ||
	     !rotation_read_total(lua_tostring(L, -1), rotation)))
		return lua_options_refuse(L, error,
		                          "rotate_limit must be the bytes of "
		                          "all dumps, such as \"500M\" or "
		                          "\"2G\", and at least \"1M\"");
	lua_options_push(L, options, "rotate");
	if (lua_isnil(L, -1))
		return 0;
	/* A copy becomes the text: the message tells what was got. */
	lua_pushvalue(L, -1);
	when = lua_isstring(L, -1) ? lua_tostring(L, -1) : "";
	lua_insert(L, -2);
	if (!rotation_read_when(when, rotation))
		return lua_options_refuse(
			L, error,
			"rotate must be seconds, at least 1, a time such as "
			"\"10min\" or \"1h\", or bytes such as \"64M\", at "
			"least \"64K\"");
	if (mode != LUAM_SYSPROF_DEFAULT)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EINVAL,
	                 "rotate needs mode \"L\" or \"C\": mode \"D\" writes "
	                 "no dump");
}

static int read_perf(lua_State *L, int options, enum perf_names_kind *perf,
                     struct error *error)
{
	lua_options_push(L, options, "perf");
	*perf = lua_toboolean(L, -1) ? PERF_NAMES_MAP : PERF_NAMES_OFF;
	if (lua_isnil(L, -1) || lua_isboolean(L, -1))
		return 0;
	*perf = PERF_NAMES_OFF;
	if (lua_type(L, -1) == LUA_TSTRING)
		*perf = perf_names_find_kind(lua_tostring(L, -1));
	if (*perf)
		return 0;
	return lua_options_refuse(L, error,
	                          "perf must be true, false, \"map\", "
	                          "\"lines\" or \"jitdump\"");
}

static int read_perf_unwind(lua_State *L, int options,
                            enum perf_names_unwind *unwind, struct error *error)
{
	int found = -1;

	lua_options_push(L, options, "perf_unwind");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) == LUA_TSTRING)
		found = perf_names_find_unwind(lua_tostring(L, -1));
	if (found < 0)
		return lua_options_refuse(L, error,
		                          "perf_unwind must be \"mapped\", "
		                          "\"file\" or \"off\"");
	*unwind = (enum perf_names_unwind)found;
	return 0;
}

static int read_perf_dir(lua_State *L, int options, const char **perf_dir,
                         struct error *error)
{
	size_t length = 0;

	*perf_dir = NULL;
	lua_options_push(L, options, "perf_dir");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) == LUA_TSTRING)
		*perf_dir = lua_tolstring(L, -1, &length);
	if (length > 0 && strlen(*perf_dir) == length)
		return 0;
	return lua_options_refuse(L, error,
	                          "perf_dir must be the name of a directory "
	                          "for the jitdump");
}

static int read_scope(lua_State *L, int options, bool *process,
                      struct error *error)
{
	const char *scope = NULL;

	*process = false;
	lua_options_push(L, options, "scope");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) == LUA_TSTRING)
		scope = lua_tostring(L, -1);
	*process = scope && strcmp(scope, "process") == 0;
	if (*process || (scope && strcmp(scope, "vm") == 0))
		return 0;
	return lua_options_refuse(L, error,
	                          "scope must be \"vm\" or \"process\"");
}

static int read_fork(lua_State *L, int options, bool *follow,
                     struct error *error)
{
	const char *fork = NULL;

	*follow = false;
	lua_options_push(L, options, "fork");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) == LUA_TSTRING)
		fork = lua_tostring(L, -1);
	*follow = fork && strcmp(fork, "follow") == 0;
	if (*follow || (fork && strcmp(fork, "stop") == 0))
		return 0;
	return lua_options_refuse(L, error,
	                          "fork must be \"stop\" or \"follow\"");
}

static int read_overhead(lua_State *L, int options, uint32_t *permille,
                         struct error *error)
{
	lua_Number percent;

	*permille = OVERHEAD_PERMILLE_DEFAULT;
	lua_options_push(L, options, "overhead");
	if (lua_isnil(L, -1))
		return 0;
	percent = lua_tonumber(L, -1);
	if (lua_type(L, -1) == LUA_TNUMBER && percent >= 0.1 &&
	    percent <= 100) {
		*permille = (uint32_t)(percent * 10 + 0.5);
		return 0;
	}
	return lua_options_refuse(L, error,
	                          "overhead must be from 0.1 to 100 percent of "
	                          "the thread's time");
}

static int read_signal(lua_State *L, int options, int *number,
                       struct error *error)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"PROF", SIGPROF},
	               {"URG", SIGURG},
	               {"USR1", SIGUSR1},
	               {"USR2", SIGUSR2},
	               {"IO", SIGIO}};
	const char *name = NULL;

	*number = 0;
	lua_options_push(L, options, "signal");
	if (lua_isnil(L, -1))
		return 0;
	if (lua_type(L, -1) == LUA_TSTRING)
		name = lua_tostring(L, -1);
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; name && i < sizeof(signals) / sizeof(signals[0]);
	     i++)
		if (strcmp(name, signals[i].name) == 0)
			*number = signals[i].number;
	if (*number)
		return 0;
	return lua_options_refuse(L, error,
	                          "signal must be \"SIGPROF\", \"SIGURG\", "
	                          "\"SIGUSR1\", \"SIGUSR2\" or \"SIGIO\"");
}

static int read_times(lua_State *L, int table, struct session_options *options,
                      struct error *error)
{
	if (read_clock(L, table, options, error) < 0)
		return -1;
	if (options->first_clock == SAMPLE_CLOCK_EVENT)
		return read_event_count(L, table, options, error);
	return read_interval(L, table, &options->interval_ns, error);
}

/* No option is known to be good before all are read. */
int sysprof_read_options(lua_State *L, int table,
                         struct session_options *options, struct error *error)
{
	if (lua_options_check_names(L, table, option_names, error) < 0 ||
	    read_mode(L, table, &options->mode, error) < 0 ||
	    read_times(L, table, options, error) < 0 ||
	    read_kernel(L, table, options, error) < 0 ||
	    read_path(L, table, options->mode, &options->path, error) < 0 ||
	    read_rotate(L, table, options->mode, &options->rotation, error) <
	            0 ||
	    read_scope(L, table, &options->process, error) < 0 ||
	    read_fork(L, table, &options->follow_forks, error) < 0 ||
	    read_overhead(L, table, &options->overhead_permille, error) < 0 ||
	    read_signal(L, table, &options->signal, error) < 0)
		return -1;
	if (read_perf(L, table, &options->perf, error) < 0)
		return -1;
	if (read_perf_dir(L, table, &options->perf_dir, error) < 0)
		return -1;
	return read_perf_unwind(L, table, &options->perf_unwind, error);
}

static int sysprof_start(lua_State *L)
{
	struct session_options options = {0};
	struct error error;

	lua_settop(L, 1);
	if (lua_isnil(L, 1)) {
		lua_newtable(L);
		lua_replace(L, 1);
	}
	if (!lua_istable(L, 1)) {
		lua_options_refuse(L, &error,
		                   "the options must be a table with any "
		                   "of " OPTION_NAMES);
		return lua_options_push_failure(L, &error);
	}
	if (sysprof_read_options(L, 1, &options, &error) < 0 ||
	    session_start(L, &options, &error) < 0) {
		perf_share_meet(L); /* one of the process may be running */
		return lua_options_push_failure(L, &error);
	}
	lua_pushboolean(L, true);
	return 1;
}

/* ---- stop, report, available ---------------------------------------------- */

static int sysprof_stop(lua_State *L)
{
	struct error error;

	if (session_stop(L, &error) < 0)
		return lua_options_push_failure(L, &error);
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

/* Memory at most, as far as it was ever touched. */
static void set_held(lua_State *L, const struct session_report *report)
{
	uint64_t samplers = report->threads.held_bytes;
	uint64_t writer = report->writer.held_bytes;

	set_number(L, "held_bytes", samplers + writer);
	lua_newtable(L);
	set_number(L, "samplers", samplers);
	set_number(L, "writer", writer);
	lua_setfield(L, -2, "held");
}

static int sysprof_report(lua_State *L)
{
	struct session_report report;

	perf_share_meet(L);
	session_read_report(L, &report);
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
	set_number(L, "threads", report.threads.thread_count);
	set_number(L, "missed_threads", report.threads.missed_count);
	set_number(L, "blocked_threads", report.threads.blocking_count);
	lua_pushboolean(L, report.threads.is_replaced);
	lua_setfield(L, -2, "signal_replaced");
	set_number(L, "kernel_threads", report.threads.kernel_count);
	set_held(L, &report);
	set_number(L, "dumps", report.writer.dump_count);
	set_number(L, "removed_dumps", report.writer.removed_count);
	if (!report.clock)
		return 1;
	lua_pushstring(L, report.clock);
	lua_setfield(L, -2, "clock");
	lua_pushnumber(L, (lua_Number)report.interval_ns / NS_PER_MS);
	lua_setfield(L, -2, "interval");
	lua_pushnumber(L, (lua_Number)report.threads.interval_ns / NS_PER_MS);
	lua_setfield(L, -2, "interval_now");
	set_number(L, "handler_ns", report.threads.handler_ns);
	return 1;
}

static int sysprof_available(lua_State *L)
{
	struct error error;
	bool available = session_check_available(L, &error) == 0;

	perf_share_meet(L);
	lua_pushboolean(L, available);
	if (available)
		return 1;
	lua_pushstring(L, error.text);
	return 2;
}

/* ---- modules -------------------------------------------------------------- */

static const luaL_Reg sysprof_functions[] = {
	{"start", sysprof_start},   {"stop", sysprof_stop},
	{"report", sysprof_report}, {"available", sysprof_available},
	{"label", label_coroutine}, {NULL, NULL},
};

/* A table of functions below misc. */
struct module {
	const char *name;
	const luaL_Reg *functions;
};

static const struct module modules[] = {
	{"sysprof", sysprof_functions},
	{"memprof", memprof_functions},
};

#define MODULE_COUNT (sizeof(modules) / sizeof(modules[0]))

/* Our table of functions is in the registry; the module's address is the key. */
static void push_module(lua_State *L, const struct module *module)
{
	lua_pushlightuserdata(L, (void *)module);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_istable(L, -1))
		return;
	lua_pop(L, 1);
	lua_newtable(L);
	for (const luaL_Reg *entry = module->functions; entry->name; entry++) {
		lua_pushcfunction(L, entry->func);
		lua_setfield(L, -2, entry->name);
	}
	lua_pushlightuserdata(L, (void *)module);
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
static void add_missing_functions(lua_State *L, const luaL_Reg *functions)
{
	int from = lua_gettop(L);
	int to = from - 1;

	for (const luaL_Reg *entry = functions; entry->name; entry++) {
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
static void complete_misc(lua_State *L, const struct module *module)
{
	int misc = lua_gettop(L);

	push_raw_field(L, misc, module->name);
	if (lua_isnil(L, -1)) {
		lua_pushstring(L, module->name);
		push_module(L, module);
		lua_rawset(L, misc);
	} else if (lua_istable(L, -1)) {
		push_module(L, module);
		add_missing_functions(L, module->functions);
	}
	lua_settop(L, misc);
}

static void complete_all(lua_State *L)
{
	for (size_t i = 0; i < MODULE_COUNT; i++)
		complete_misc(L, &modules[i]);
}

int luaM_open_misc(lua_State *L)
{
	perf_share_meet(L);
	push_raw_field(L, LUA_GLOBALSINDEX, "misc");
	if (lua_istable(L, -1)) {
		complete_all(L);
		return 1;
	}
	lua_newtable(L);
	complete_all(L);
	if (!lua_isnil(L, -2))
		return 1;
	lua_pushstring(L, "misc");
	lua_pushvalue(L, -2);
	lua_rawset(L, LUA_GLOBALSINDEX);
	return 1;
}

int luaM_open_misc_sysprof(lua_State *L)
{
	perf_share_meet(L);
	push_module(L, &modules[0]);
	return 1;
}

int luaM_open_misc_memprof(lua_State *L)
{
	push_module(L, &modules[1]);
	return 1;
}
