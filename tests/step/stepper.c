// SPDX-License-Identifier: MIT
/*
 * Stepper: a Lua module that takes a sample after every machine instruction of
 * a Lua function, by the CPU's trap flag, with the product's own walker.
 *
 * stepper.run(function, limit) steps through at most limit instructions of
 * function() and returns how many it stepped; equal stacks in a row are kept
 * once. stepper.layouts() returns the names of the layouts that the self-check
 * accepts for this VM, without those that only lua_State's length sets apart.
 * stepper.stacks(callback) then calls callback(stack, count, marked, where) for
 * each, oldest first: frames joined by ";", root first; how many instructions had
 * it; whether it holds a marker, so says itself that it is not whole; the first
 * instruction of the run. stepper.trace_lines: does this build (since 2021) tell
 * which line of a trace runs?
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <lauxlib.h>
#include <lua.h>

#include "host/host_symbols.h"
#include "host/unwind_table.h"
#include "load_sig.h"
#include "vm/check.h"
#include "vm/code.h"
#include "vm/layout.h"
#include "vm/object_sig.h"
#include "vm/vm.h"
#include "walk_sig.h"

#define LAYOUTS_STACK_SLOTS 40
#define BUFFER_BYTES        (UINT64_C(4) << 30)
#define TRAP_FLAG           0x100
#define STEP_FRAMES_MAX     1000

/* First line of the library functions that are Lua functions. */
#define BUILT_IN_LINE UINT32_MAX

enum step_kind {
	STEP_NATIVE, /* value: start of the function, or the address */
	STEP_LUA,    /* value: prototype */
	STEP_C,      /* value: entry address */
	STEP_FAST,   /* value: number */
	STEP_MARKER, /* value: enum frame_marker */
};

struct step_frame {
	uint64_t value;
	uint32_t line;
	uint32_t kind;
};

/* One run of equal stacks. */
struct step_run {
	uint64_t ip; /* of its first instruction */
	uint32_t instruction_count;
	uint32_t frame_count;
	struct step_frame frames[]; /* leaf first */
};

static struct stepper {
	struct vm vm;
	struct walk walk;
	struct fast_names fast_names;
	uint8_t *buffer;
	size_t used;
	struct step_run *last;
	uint64_t step_count, step_limit;
	bool running;
	uint32_t frame_count;
	struct step_frame frames[STEP_FRAMES_MAX];
} stepper;

static void append(enum step_kind kind, uint64_t value, uint32_t line)
{
	if (stepper.frame_count == STEP_FRAMES_MAX)
		return;
	stepper.frames[stepper.frame_count++] =
		(struct step_frame){value, line, (uint32_t)kind};
}

static void show_native(void *context, uint64_t address)
{
	uint64_t start = address, end;

	(void)context;
	/* VM code is one function to the unwind tables, and so it shall be. */
	unwind_find_function(address, &start, &end);
	append(STEP_NATIVE, start, 0);
}

static void show_guest(void *context, const struct guest_frame *frame)
{
	(void)context;
	switch (frame->kind) {
	case GUEST_LUA_FUNCTION:
		append(STEP_LUA, frame->prototype, frame->line);
		break;
	case GUEST_C_FUNCTION:
		append(STEP_C, frame->c_function, 0);
		break;
	case GUEST_FAST_FUNCTION:
		append(STEP_FAST, frame->fast_number, 0);
		break;
	case GUEST_UNKNOWN_FUNCTION:
		append(STEP_MARKER, MARKER_GUEST_BAD_FRAME, 0);
		break;
	}
}

static void show_marker(void *context, enum frame_marker marker,
                        uint32_t frame_count)
{
	(void)context;
	(void)frame_count;
	append(STEP_MARKER, marker, 0);
}

static void keep_stack(uint64_t ip)
{
	size_t frame_bytes = stepper.frame_count * sizeof(stepper.frames[0]);
	struct step_run *run = stepper.last;

	if (run && run->frame_count == stepper.frame_count &&
	    !memcmp(run->frames, stepper.frames, frame_bytes)) {
		run->instruction_count++;
		return;
	}
	if (stepper.used + sizeof(*run) + frame_bytes > BUFFER_BYTES)
		return;
	run = (struct step_run *)(stepper.buffer + stepper.used);
	run->ip = ip;
	run->instruction_count = 1;
	run->frame_count = stepper.frame_count;
	memcpy(run->frames, stepper.frames, frame_bytes);
	stepper.used += sizeof(*run) + frame_bytes;
	stepper.last = run;
}

static void handle_trap(int signal, siginfo_t *info, void *opaque)
{
	static const struct walk_visitor visitor = {
		.native = show_native,
		.guest = show_guest,
		.marker = show_marker,
	};
	ucontext_t *context = opaque;
	greg_t *flags = &context->uc_mcontext.gregs[REG_EFL];
	struct walk_facts facts;
	int saved_errno = errno;

	(void)signal;
	(void)info;
	if (!stepper.running || stepper.step_count >= stepper.step_limit) {
		*flags &= ~(greg_t)TRAP_FLAG;
		return;
	}
	*flags |= TRAP_FLAG;
	stepper.step_count++;
	stepper.frame_count = 0;
	walk_stack(&stepper.walk, &stepper.vm, context, &visitor, NULL, &facts);
	keep_stack((uint64_t)context->uc_mcontext.gregs[REG_RIP]);
	errno = saved_errno;
}

/* The main lua_State lies before all else, so its length shifts the rest. */
static bool is_shifted(const struct vm_layout *layout)
{
	const struct vm_layout *chosen = stepper.vm.layout;
	int shift = layout->gg_global - chosen->gg_global;

	return shift && layout->gg_jit - chosen->gg_jit == shift &&
	       layout->gg_dispatch - chosen->gg_dispatch == shift &&
	       !memcmp(&layout->global, &chosen->global,
	               sizeof(layout->global)) &&
	       !memcmp(&layout->trace, &chosen->trace, sizeof(layout->trace)) &&
	       !memcmp(&layout->snapshot, &chosen->snapshot,
	               sizeof(layout->snapshot)) &&
	       !memcmp(&layout->jit, &chosen->jit, sizeof(layout->jit));
}

static int stepper_layouts(lua_State *L)
{
	size_t i;
	int count = 0;

	luaL_checkstack(L, LAYOUTS_STACK_SLOTS, "layouts");
	lua_newtable(L);
	for (i = 0; i < vm_layout_count; i++) {
		struct check_failure failure;
		bool traces_compared;
		uint64_t global_state;
		bool fits = layout_check(L, &vm_layouts[i], stepper.vm.code,
		                         stepper_layouts, &global_state,
		                         &traces_compared, &failure);

		lua_settop(L, 1);
		if (!fits || is_shifted(&vm_layouts[i]))
			continue;
		lua_pushstring(L, vm_layouts[i].name);
		lua_rawseti(L, 1, ++count);
	}
	return 1;
}

static int stepper_run(lua_State *L)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO}, previous;

	luaL_checktype(L, 1, LUA_TFUNCTION);
	stepper.step_limit = (uint64_t)luaL_checknumber(L, 2);
	stepper.step_count = 0;
	stepper.used = 0;
	stepper.last = NULL;
	unwind_tables_refresh(0, UNWIND_NO_BUDGET, NULL);
	action.sa_sigaction = handle_trap;
	sigaction(SIGTRAP, &action, &previous);
	lua_pushvalue(L, 1);
	stepper.running = true;
	raise(SIGTRAP);
	lua_call(L, 0, 0);
	stepper.running = false;
	raise(SIGTRAP);
	sigaction(SIGTRAP, &previous, NULL);
	lua_pushnumber(L, (lua_Number)stepper.step_count);
	return 1;
}

static void format_lua(char *text, size_t bytes, const struct step_frame *frame)
{
	const struct vm_layout *layout = stepper.vm.layout;
	uint32_t length = 0, first_line = 0;
	char chunk[64] = "?";
	uint64_t string;

	if (is_object(layout, frame->value, TYPE_PROTOTYPE) &&
	    load_reference(layout,
	                   frame->value + layout->object.prototype.chunk_name,
	                   &string) &&
	    load_u32(string + layout->string.length, &length)) {
		if (length > sizeof(chunk) - 1)
			length = sizeof(chunk) - 1;
		load_bytes(chunk, string + layout->string.bytes, length);
		chunk[length] = '\0';
		load_u32(frame->value + layout->object.prototype.first_line,
		         &first_line);
	}
	if (first_line == BUILT_IN_LINE)
		snprintf(text, bytes, "built-in %s", chunk);
	else
		snprintf(text, bytes, "%s:%u:%u", chunk, first_line,
		         frame->line);
}

static void format_native(char *text, size_t bytes, uint64_t address)
{
	static struct host_symbols *symbols;
	struct host_symbol symbol;

	if (address == stepper.vm.code->start) {
		snprintf(text, bytes, "VM");
		return;
	}
	if (!symbols)
		symbols = host_symbols_open(NULL);
	host_symbols_find(symbols, address, &symbol);
	snprintf(text, bytes, "%s", symbol.name);
}

/* Only the FFI has functions that are in no library table. */
static const char *fast_name(uint64_t number)
{
	const char *name = stepper.fast_names.name[number];

	return name[0] ? name : "ffi";
}

static void format_frame(char *text, size_t bytes,
                         const struct step_frame *frame)
{
	char name[HOST_SYMBOL_NAME_BYTES];

	switch ((enum step_kind)frame->kind) {
	case STEP_NATIVE:
		format_native(text, bytes, frame->value);
		break;
	case STEP_LUA:
		format_lua(text, bytes, frame);
		break;
	case STEP_C:
		format_native(name, sizeof(name), frame->value);
		snprintf(text, bytes, "C %.200s", name);
		break;
	case STEP_FAST:
		snprintf(text, bytes, "F %s", fast_name(frame->value));
		break;
	case STEP_MARKER:
		snprintf(text, bytes, "MARKER %u", (unsigned)frame->value);
		break;
	}
}

static int stepper_stacks(lua_State *L)
{
	char text[HOST_SYMBOL_NAME_BYTES + 16];
	size_t at = 0;

	luaL_checktype(L, 1, LUA_TFUNCTION);
	while (at < stepper.used) {
		struct step_run *run = (void *)(stepper.buffer + at);
		bool marked = false;
		luaL_Buffer buffer;
		uint32_t i;

		lua_pushvalue(L, 1);
		luaL_buffinit(L, &buffer);
		for (i = run->frame_count; i-- > 0;) {
			format_frame(text, sizeof(text), &run->frames[i]);
			luaL_addstring(&buffer, text);
			if (i)
				luaL_addchar(&buffer, ';');
			marked = marked || run->frames[i].kind == STEP_MARKER;
		}
		luaL_pushresult(&buffer);
		lua_pushnumber(L, run->instruction_count);
		lua_pushboolean(L, marked);
		if (run->ip >= stepper.vm.code->start &&
		    run->ip < stepper.vm.code->end)
			lua_pushfstring(
				L, "VM+%d",
				(int)(run->ip - stepper.vm.code->start));
		else {
			format_native(text, sizeof(text), run->ip);
			lua_pushstring(L, text);
		}
		lua_call(L, 4, 0);
		at += sizeof(*run) + run->frame_count * sizeof(run->frames[0]);
	}
	return 0;
}

/* Entries into Lua from C, for the programs that are stepped through. */
static int stepper_call(lua_State *L)
{
	lua_call(L, lua_gettop(L) - 1, 0);
	return 0;
}

static int stepper_pcall(lua_State *L)
{
	lua_pushinteger(L, lua_pcall(L, lua_gettop(L) - 1, 0, 0));
	return 1;
}

static int call_registered(lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "stepper function");
	lua_call(L, 0, 0);
	return 0;
}

static int stepper_cpcall(lua_State *L)
{
	lua_pushvalue(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, "stepper function");
	lua_pushinteger(L, lua_cpcall(L, call_registered, NULL));
	return 1;
}

static int stepper_resume(lua_State *L)
{
	lua_State *coroutine = lua_tothread(L, 1);
	int argument_count =
		lua_gettop(coroutine) - (lua_status(coroutine) == 0 ? 1 : 0);

	lua_pushinteger(L, lua_resume(coroutine, argument_count));
	return 1;
}

static int stepper_give(lua_State *L)
{
	lua_settop(L, 1);
	return 1;
}

/* For the FFI. */
__attribute__((visibility("default"))) void stepper_callback(void (*f)(void));
void stepper_callback(void (*f)(void))
{
	f();
	__asm__ volatile("");
}

__attribute__((visibility("default"))) double stepper_add(double a);
double stepper_add(double a)
{
	return a + 1;
}

__attribute__((visibility("default"))) int luaopen_stepper(lua_State *L);
int luaopen_stepper(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"layouts", stepper_layouts},
		{"run", stepper_run},
		{"stacks", stepper_stacks},
		{"call", stepper_call},
		{"pcall", stepper_pcall},
		{"cpcall", stepper_cpcall},
		{"resume", stepper_resume},
		{"give", stepper_give},
		{NULL, NULL},
	};
	struct error error;

	stepper.buffer =
		mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stepper.buffer == MAP_FAILED)
		return luaL_error(L, "out of memory");
	if (vm_open(&stepper.vm, L, &error) || load_faults_catch(&error))
		return luaL_error(L, "%s", error.text);
	vm_read_fast_names(&stepper.vm, L, &stepper.fast_names);
	lua_newtable(L);
	luaL_register(L, NULL, functions);
	lua_pushboolean(L, stepper.vm.layout->snapshot.code_offset !=
	                           SNAPSHOT_NO_CODE_OFFSET);
	lua_setfield(L, -2, "trace_lines");
	return 1;
}
