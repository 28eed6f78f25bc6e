// SPDX-License-Identifier: MIT
/*
 * What is known of LuaJIT on aarch64, held against a real one: a C function that
 * Lua called, in a coroutine, walks through the VM's code by its unwind rule, finds
 * the VM's C frames there, and reads the Lua stacks. Exit status 0: all as it
 * should be.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "host/unwind_sig.h"
#include "host/unwind_table.h"
#include "load_faults.h"
#include "vm/object_sig.h"

#define FRAMES_MAX 64
/* The interpreter is by far the largest function with one rule. */
#define VM_CODE_BYTES_MIN 10000

/* The VM's C frame on this CPU (lj_frame.h). */
static const struct cframe_layout cframe_layout = {
	.bytes = 208,
	.result_count = 40,
	.thread = 16,
	.pc = 8,
	.previous = 0,
};

/* Function of each line: */
static const char program[] =
	"local function inner() probe() return 1 end\n"
	"local function outer() local good = pcall(inner) return good end\n"
	"local resume = coroutine.wrap(function() outer() return 1 end)\n"
	"jit.off() resume() return 1\n";

static struct walked {
	struct walked_frame {
		uint64_t address, sp;
	} frames[FRAMES_MAX];
	size_t count;
	enum unwind_result end;
} walked;
static int failure_count;

static void check(bool good, const char *what)
{
	printf("%s: %s\n", good ? "ok" : "FAIL", what);
	failure_count += !good;
}

static void walk(int signal, siginfo_t *info, void *context)
{
	static struct unwind_cache cache;
	struct cpu_registers registers;
	bool exact = true;

	(void)signal;
	(void)info;
	cpu_registers_read(&registers, context);
	unwind_cache_begin(&cache);
	for (walked.count = 0; walked.count < FRAMES_MAX;) {
		uint64_t address = exact ? registers.ip : registers.ip - 1;

		walked.frames[walked.count++] =
			(struct walked_frame){address, registers.sp};
		walked.end = unwind_step(unwind_cache_find(&cache, address),
		                         &registers);
		exact = walked.end == UNWIND_INTERRUPTED;
		if (!exact && walked.end != UNWIND_CALLER)
			break;
	}
	unwind_cache_end(&cache);
}

static const struct vm_layout *layout_of_objects(void)
{
	size_t i = 0;

	while (!vm_layouts[i].gc64)
		i++;
	return &vm_layouts[i];
}

/* Appends to text what the frames of a Lua stack are: line of the function, C for
 * one in C, F for a fast function. */
static void describe(const struct vm_layout *layout, uint64_t thread,
                     char *text)
{
	struct lua_stack stack;
	struct lua_frame contents;
	struct lua_function function;
	uint64_t base;
	uint32_t line;

	if (!lua_stack_read(layout, thread, &stack) ||
	    !load_u64(thread + layout->object.thread.base, &base))
		return;
	for (base -= 8; base > stack_bottom(layout, &stack);
	     base = lua_frame_previous(layout, base, contents.link)) {
		text += strlen(text);
		if (!lua_frame_read(layout, base, &contents))
			return;
		/* The lower copy of a vararg frame is its call. */
		if (contents.function == thread ||
		    link_type(contents.link) == LINK_VARARG)
			continue;
		if (!lua_function_read(layout, contents.function, &function))
			return;
		if (function.id == FUNCTION_LUA &&
		    load_u32(function.prototype +
		                     layout->object.prototype.first_line,
		             &line))
			sprintf(text, " %u", line);
		else
			strcpy(text, function.id == FUNCTION_C ? " C" : " F");
	}
}

static void check_cframe(const struct vm_layout *layout, uint64_t cframe,
                         uint64_t thread)
{
	uint64_t found, own;

	check(load_u64(cframe + cframe_layout.thread, &found) &&
	              found == thread,
	      "the coroutine in a C frame");
	check(load_u64(thread + layout->object.thread.cframe, &own) &&
	              (own & ~UINT64_C(3)) == cframe,
	      "the C frame of a coroutine");
}

static int probe(lua_State *L)
{
	const struct vm_layout *layout = layout_of_objects();
	uint64_t threads[2] = {(uint64_t)L}, start, end;
	char text[2][200] = {"", ""};
	size_t i, vm_count = 0;

	lua_getfield(L, LUA_REGISTRYINDEX, "main thread");
	threads[1] = (uint64_t)lua_tothread(L, -1);
	lua_pop(L, 1);
	raise(SIGUSR1);
	for (i = 0; i < walked.count; i++) {
		if (!unwind_find_function(walked.frames[i].address, &start,
		                          &end) ||
		    end - start < VM_CODE_BYTES_MIN || start == (uint64_t)probe)
			continue;
		if (vm_count < 2)
			check_cframe(layout, walked.frames[i].sp,
			             threads[vm_count]);
		vm_count++;
	}
	check(vm_count == 2, "a C frame for each of two coroutines");
	for (i = 0; i < 2; i++)
		describe(layout, threads[i], text[i]);
	printf("Lua stacks:%s |%s\n", text[0], text[1]);
	check(!strcmp(text[0], " C 1 F 2 3") && !strcmp(text[1], " F 0"),
	      "the Lua stacks");
	return 0;
}

static bool has_walked(void *function)
{
	uint64_t start, end;
	size_t i;

	for (i = 0; i < walked.count; i++)
		if (unwind_find_function(walked.frames[i].address, &start,
		                         &end) &&
		    start == (uint64_t)function)
			return true;
	return false;
}

int main(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};
	lua_State *L = luaL_newstate();
	struct error error = {0};

	action.sa_sigaction = walk;
	sigaction(SIGUSR1, &action, NULL);
	luaL_openlibs(L);
	lua_register(L, "probe", probe);
	lua_pushthread(L);
	lua_setfield(L, LUA_REGISTRYINDEX, "main thread");
	if (load_faults_catch(&error) ||
	    unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error)) {
		printf("FAIL: %s\n", error.text);
		return 1;
	}
	if (luaL_dostring(L, program)) {
		printf("FAIL: %s\n", lua_tostring(L, -1));
		return 1;
	}
	check(walked.end == UNWIND_END && has_walked(main),
	      "a walk through the VM to the entry");
	return failure_count != 0;
}
