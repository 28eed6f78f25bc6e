// SPDX-License-Identifier: MIT
/*
 * Traces. On the VM's thread, never in the signal handler; the handler may
 * interrupt anything here and touches nothing of it.
 */
#include "traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "lmisclib.h"
#include "load_sig.h"
#include "vm/trace_code.h"

#define EVENTS_KEY "_VMEVENTS" /* in the registry: event -> function */
#define EVENT      "trace"
#define LINES_MAX  1024
#define NUMBER_END 65536

/* What the function that is attached knows. Never freed, since nobody can tell
 * when that function is collected. */
struct traces_handle {
	struct traces *_Atomic traces; /* NULL: no profile wants to know */
};

struct traces {
	struct vm vm;
	struct perf_names *names;
	struct traces_handle *handle; /* NULL: not attached */
	struct trace_area exits;      /* that were told of */
	bool leaves_gaps;
	uint64_t gap_end;          /* the newest gap in that area ends here */
	uint64_t told[NUMBER_END]; /* address by number, 0: none */
	struct trace_line lines[LINES_MAX]; /* of the trace that is told of */
};

/* Its address is the key of the host's function among those of the events. It
 * is kept there so that jit.attach() finds it when the host detaches it. */
static const char host_key;
/* Its address is the key of our function in the registry. */
static const char own_key;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/* ---- records -------------------------------------------------------------- */

/* The chunk name of a line, and whether another one follows in the record: the
 * lines of a function, in a row, share it. */
static bool read_chunk(const struct traces *traces, size_t i, const char **text,
                       uint32_t *bytes)
{
	const struct trace_line *line = &traces->lines[i];

	*bytes = 0;
	if (i > 0 && line->prototype == line[-1].prototype)
		return false;
	if (!prototype_read_chunk(&traces->vm, line->prototype, text, bytes))
		*bytes = 0;
	return true;
}

/* Room for a record of code with line_count lines and text_bytes of names. */
static struct code_record *new_record(const struct traces *traces,
                                      size_t line_count, size_t code_bytes,
                                      size_t text_bytes)
{
	size_t line_bytes = line_count * sizeof(struct code_line);
	struct code_record *record =
		malloc(sizeof(*record) + line_bytes + code_bytes + text_bytes);

	if (!record)
		return NULL;
	*record = (struct code_record){
		.owner = traces->vm.global_state,
		.time_ns = monotonic_ns(),
		.thread_id = (uint32_t)gettid(),
		.lines = (struct code_line *)(record + 1),
		.line_count = line_count,
		.contents = (uint8_t *)(record + 1) + line_bytes,
	};
	return record;
}

static bool fill_record(struct traces *traces, struct code_record *record,
                        uint64_t address, uint32_t bytes)
{
	const struct trace_area *area = &traces->exits;

	record->address = address;
	record->bytes = bytes;
	record->area_start = address;
	record->area_end = address + bytes;
	if (address >= area->start && address < area->end) {
		record->area_start = area->start;
		record->area_end = area->end;
	}
	return load_bytes((void *)(uintptr_t)record->contents, address, bytes);
}

/* Copies a chunk name to *names, and moves that behind it. */
static void fill_chunk(struct code_line *line, const char *text, uint32_t bytes,
                       char **names)
{
	line->chunk = *names;
	line->chunk_bytes = bytes;
	if (bytes > 0)
		memcpy(*names, text, bytes);
	*names += bytes;
}

static void fill_lines(const struct traces *traces, struct code_record *record,
                       const struct trace_code *code)
{
	struct code_line *to = (struct code_line *)(uintptr_t)record->lines;
	char *names = (char *)(uintptr_t)record->contents + record->bytes;
	const char *start;
	uint32_t start_bytes;

	record->start = (struct code_line){
		.address = code->address,
		.line = code->start_line,
	};
	if (prototype_read_chunk(&traces->vm, code->prototype, &start,
	                         &start_bytes))
		fill_chunk(&record->start, start, start_bytes, &names);
	for (size_t i = 0; i < record->line_count; i++) {
		const char *text;
		uint32_t bytes;

		to[i] = (struct code_line){
			.address = traces->lines[i].address,
			.line = traces->lines[i].line,
		};
		if (!read_chunk(traces, i, &text, &bytes)) {
			to[i].chunk = to[i - 1].chunk;
			to[i].chunk_bytes = to[i - 1].chunk_bytes;
			continue;
		}
		fill_chunk(&to[i], text, bytes, &names);
	}
}

/* ---- room behind the code ------------------------------------------------- */

/* Is memory executable at the address? */
static bool is_executable(uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	char line[512], rights[8];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%llx-%llx %7s", &start, &end, rights) ==
		                3 &&
		        address >= start && address < end && rights[2] == 'x';
	if (maps)
		fclose(maps);
	return found;
}

/* Rules for unwinding hide what is behind the code of a new trace: the older
 * one above it, unless there is a gap between. */
static bool has_gap(struct traces *traces, const struct trace_code *code)
{
	const struct trace_area *area = &traces->exits;
	uint64_t end = code->address + code->bytes;

	if (code->address < area->start || end > area->end)
		return false;
	if (end + PERF_NAMES_ROOM_BYTES <= traces->gap_end)
		return true;
	/* The first one of an area: is there code right behind that? */
	return traces->gap_end == 0 &&
	       area->end - end < PERF_NAMES_ROOM_BYTES &&
	       !is_executable(area->end);
}

/* For the next trace. The gap ends where the last trace starts. */
static void leave_gap(struct traces *traces)
{
	struct trace_area area;

	if (!traces->leaves_gaps || !trace_read_area(&traces->vm, &area))
		return;
	traces->gap_end = area.top;
	trace_leave_gap(&traces->vm, PERF_NAMES_ROOM_BYTES);
}

/* ---- telling -------------------------------------------------------------- */

static void tell_trace(struct traces *traces, uint32_t number)
{
	struct code_record *record;
	struct trace_code code;
	size_t line_count, text_bytes;
	const char *text;
	uint32_t bytes = 0;

	if (number >= NUMBER_END ||
	    !trace_read_code(&traces->vm, number, &code) ||
	    traces->told[number] == code.address)
		return;
	line_count =
		trace_read_lines(&traces->vm, &code, traces->lines, LINES_MAX);
	prototype_read_chunk(&traces->vm, code.prototype, &text, &bytes);
	text_bytes = bytes;
	for (size_t i = 0; i < line_count; i++) {
		read_chunk(traces, i, &text, &bytes);
		text_bytes += bytes;
	}
	record = new_record(traces, line_count, code.bytes, text_bytes);
	if (!record)
		return;
	record->kind = CODE_TRACE;
	record->trace_number = number;
	record->frame_bytes = code.frame_bytes;
	record->has_room = has_gap(traces, &code);
	if (!fill_record(traces, record, code.address, code.bytes)) {
		free(record);
		return;
	}
	fill_lines(traces, record, &code);
	traces->told[number] = code.address;
	perf_names_push(traces->names, record);
}

static void tell_exits(struct traces *traces, uint64_t start, uint64_t end)
{
	uint32_t bytes = (uint32_t)(end - start);
	struct code_record *record = new_record(traces, 0, bytes, 0);

	if (!record)
		return;
	record->kind = CODE_EXITS;
	if (fill_record(traces, record, start, bytes))
		perf_names_push(traces->names, record);
	else
		free(record);
}

/* New exits are made at the lower end of the area while a trace is assembled. */
static void tell_new_exits(struct traces *traces)
{
	struct trace_area area;
	uint64_t start;

	if (!trace_read_area(&traces->vm, &area))
		return;
	start = area.start == traces->exits.start ? traces->exits.used_end
	                                          : area.used_start;
	if (area.start != traces->exits.start)
		traces->gap_end = 0;
	traces->exits = area;
	if (start < area.used_end)
		tell_exits(traces, start, area.used_end);
}

static void tell_flush(struct traces *traces)
{
	struct code_record *record = new_record(traces, 0, 0, 0);

	memset(traces->told, 0, sizeof(traces->told));
	traces->exits = (struct trace_area){0};
	if (!record)
		return;
	record->kind = CODE_FLUSH;
	perf_names_push(traces->names, record);
}

static void tell_all(struct traces *traces)
{
	uint32_t end = trace_number_end(&traces->vm);

	tell_new_exits(traces);
	for (uint32_t number = 1; number < end; number++)
		tell_trace(traces, number);
}

/* ---- events --------------------------------------------------------------- */

/* Upvalues of the function that is attached. */
enum upvalue {
	UPVALUE_HANDLE = 1,
	UPVALUE_EVENTS,   /* the table of functions */
	UPVALUE_HOST_KEY, /* of the host's function in it */
};

static void take_event(struct traces *traces, lua_State *L)
{
	const char *what =
		lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";

	if (strcmp(what, "stop") == 0) {
		tell_new_exits(traces);
		tell_trace(traces, (uint32_t)lua_tointeger(L, 2));
		leave_gap(traces);
	} else if (strcmp(what, "abort") == 0) {
		tell_new_exits(traces);
	} else if (strcmp(what, "flush") == 0) {
		tell_flush(traces);
	} else {
		perf_names_wake(traces->names);
	}
}

/*
 * Allocates nothing in the VM and needs no more of its stack than any C function
 * has. Errors of the host's function go where they went without us.
 */
static int on_event(lua_State *L)
{
	const struct traces_handle *handle =
		lua_touserdata(L, lua_upvalueindex(UPVALUE_HANDLE));
	struct traces *traces = handle->traces;
	int count = lua_gettop(L);

	if (traces)
		take_event(traces, L);
	lua_pushvalue(L, lua_upvalueindex(UPVALUE_HOST_KEY));
	lua_rawget(L, lua_upvalueindex(UPVALUE_EVENTS));
	if (!lua_isfunction(L, -1))
		return 0;
	lua_insert(L, 1);
	lua_call(L, count, 0);
	return 0;
}

/* Pushes jit.attach, or returns false. */
static bool push_attach(lua_State *L)
{
	int top = lua_gettop(L);

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	if (lua_istable(L, -1)) {
		lua_pushliteral(L, "jit");
		lua_rawget(L, -2);
	}
	if (lua_istable(L, -1)) {
		lua_pushliteral(L, "attach");
		lua_rawget(L, -2);
	}
	if (lua_isfunction(L, -1)) {
		lua_replace(L, top + 1);
		lua_settop(L, top + 1);
		return true;
	}
	lua_settop(L, top);
	return false;
}

/* Attaches the function at index function to the event, or detaches it. */
static void call_attach(lua_State *L, int attach, int function, bool detach)
{
	lua_pushvalue(L, attach);
	lua_pushvalue(L, function);
	if (detach) {
		lua_call(L, 1, 0);
		return;
	}
	lua_pushliteral(L, EVENT);
	lua_call(L, 2, 0);
}

/* Pushes the function that the events table has for the event: the one that
 * changes when another is attached. */
static void push_host_function(lua_State *L, int attach, int events, int own)
{
	int before, key;

	lua_newtable(L);
	before = lua_gettop(L);
	for (lua_pushnil(L); lua_next(L, events) != 0;) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_rawset(L, before);
	}
	call_attach(L, attach, own, false);
	for (lua_pushnil(L); lua_next(L, events) != 0; lua_pop(L, 1)) {
		if (!lua_rawequal(L, -1, own))
			continue;
		key = lua_gettop(L) - 1;
		lua_pushvalue(L, key);
		lua_rawget(L, before);
		lua_replace(L, before);
		lua_settop(L, before);
		return;
	}
	lua_pushnil(L);
	lua_replace(L, before);
}

static void detach(lua_State *L);

static void attach(struct traces *traces, lua_State *L)
{
	int top = lua_gettop(L);
	int function = top + 1, events = top + 2, own = top + 3;

	detach(L); /* what a parent process has left, if this is a child */
	if (!push_attach(L))
		return;
	luaL_findtable(L, LUA_REGISTRYINDEX, EVENTS_KEY, 8);
	traces->handle = calloc(1, sizeof(*traces->handle));
	if (!traces->handle) {
		lua_settop(L, top);
		return;
	}
	traces->handle->traces = traces;
	lua_pushlightuserdata(L, traces->handle);
	lua_pushvalue(L, events);
	lua_pushlightuserdata(L, (void *)&host_key);
	lua_pushcclosure(L, on_event, 3);
	lua_pushlightuserdata(L, (void *)&own_key);
	lua_pushvalue(L, own);
	lua_rawset(L, LUA_REGISTRYINDEX);

	push_host_function(L, function, events, own);
	lua_pushlightuserdata(L, (void *)&host_key);
	lua_insert(L, -2);
	lua_rawset(L, events);
	lua_settop(L, top);
}

/* Is our function still the one that is called? */
static bool is_attached(lua_State *L, int events, int own)
{
	int top = lua_gettop(L);
	bool found = false;

	for (lua_pushnil(L); !found && lua_next(L, events) != 0; lua_pop(L, 1))
		found = lua_rawequal(L, -1, own);
	lua_settop(L, top);
	return found;
}

static void detach(lua_State *L)
{
	int top = lua_gettop(L);
	int function = top + 1, events = top + 2, own = top + 3, host = top + 4;
	bool attached;

	if (!push_attach(L))
		return;
	luaL_findtable(L, LUA_REGISTRYINDEX, EVENTS_KEY, 8);
	lua_pushlightuserdata(L, (void *)&own_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	lua_pushlightuserdata(L, (void *)&host_key);
	lua_rawget(L, events);
	if (lua_isfunction(L, own)) {
		attached = is_attached(L, events, own);
		call_attach(L, function, own, true);
		if (attached && lua_isfunction(L, host))
			call_attach(L, function, host, false);
	}
	lua_pushlightuserdata(L, (void *)&host_key);
	lua_pushnil(L);
	lua_rawset(L, events);
	lua_pushlightuserdata(L, (void *)&own_key);
	lua_pushnil(L);
	lua_rawset(L, LUA_REGISTRYINDEX);
	lua_settop(L, top);
}

/* ---- interface ------------------------------------------------------------ */

struct traces *traces_open(const struct vm *vm, struct perf_names *names,
                           struct error *error)
{
	struct traces *traces = calloc(1, sizeof(*traces));

	if (!traces) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the names of traces");
		return NULL;
	}
	traces->vm = *vm;
	traces->names = names;
	traces->leaves_gaps = perf_names_want_room(names);
	return traces;
}

void traces_watch(struct traces *traces, lua_State *L)
{
	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	attach(traces, L);
	tell_all(traces);
	leave_gap(traces);
}

void traces_unwatch(struct traces *traces, lua_State *L)
{
	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	tell_all(traces);
	if (!traces->handle)
		return;
	traces->handle->traces = NULL;
	traces->handle = NULL;
	detach(L);
}

bool traces_is_watched(lua_State *L)
{
	int top = lua_gettop(L);
	const struct traces_handle *handle = NULL;

	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	lua_pushlightuserdata(L, (void *)&own_key);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_getupvalue(L, top + 1, UPVALUE_HANDLE))
		handle = lua_touserdata(L, -1);
	lua_settop(L, top);
	return handle && handle->traces;
}

void traces_abandon(struct traces *traces)
{
	if (traces->handle)
		traces->handle->traces = NULL;
}

void traces_forget(struct traces *traces)
{
	tell_flush(traces);
	traces_close(traces);
}

void traces_close(struct traces *traces)
{
	if (traces->handle)
		traces->handle->traces = NULL;
	free(traces);
}
