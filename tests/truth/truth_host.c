// SPDX-License-Identifier: MIT
/*
 * A host whose true stack is known at every moment: each of its functions, and
 * each function of truth.lua, writes down that it runs. At every sample the walk
 * is compared with what was written: the same functions in the same order.
 *
 * A function notes itself first and strikes itself out last, so the innermost
 * frame may be there without a note. While an error is thrown nothing is
 * struck out; those samples are not judged, and counted.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "clock.h"
#include "host/unwind_table.h"
#include "load_sig.h"
#include "vm/layout.h"
#include "vm/vm.h"
#include "walk_sig.h"

#define EXPORTED         __attribute__((visibility("default"), noinline))
#define NOTES_MAX        256
#define FUNCTIONS_MAX    64
#define KEPT_MAX         3
#define SECONDS          3.0
#define INTERVAL_NS      100000
#define SAMPLES_MIN      5000
#define UNJUDGED_PER_100 30

/* What runs: Lua functions by their first line, C functions by their entry. */
struct notes {
	uint32_t depth;
	uint32_t throwing; /* an error is on its way */
	uint64_t ids[NOTES_MAX];
};

struct frames {
	size_t count;
	uint64_t ids[1024];
	bool in_trace;
	size_t below_trace; /* index of the first one below the trace */
};

__attribute__((visibility("default"))) struct notes truth_notes;

static struct truth {
	struct vm vm;
	lua_State *other; /* of a second VM, for truth_other() */
	struct walk walk;
	uint64_t functions[FUNCTIONS_MAX]; /* that note, C and Lua */
	size_t function_count;
	uint64_t seen_count[FUNCTIONS_MAX]; /* frames of each */
	struct frames walked;               /* leaf first */
	uint64_t sample_count, unjudged_count, marked_count, wrong_count;
	uint64_t marked_by_kind[MARKER_COUNT];
	bool is_marked;
	enum frame_marker marker;
	struct kept {
		struct frames walked;
		struct notes notes;
	} kept[KEPT_MAX];
} truth;

/* Is returned by others, and never called. */
EXPORTED int truth_never(lua_State *L);

/* ---- the comparison, in the signal handler -------------------------------- */

static bool is_noting(uint64_t function)
{
	size_t i;

	for (i = 0; i < truth.function_count; i++)
		if (truth.functions[i] == function)
			return true;
	return false;
}

static void append(uint64_t id)
{
	struct frames *frames = &truth.walked;
	size_t i;

	for (i = 0; i < truth.function_count; i++)
		truth.seen_count[i] += truth.functions[i] == id;
	if (frames->count == sizeof(frames->ids) / sizeof(frames->ids[0]))
		return;
	frames->ids[frames->count++] = id;
}

static void show_native(void *context, uint64_t address)
{
	uint64_t start, end;

	(void)context;
	if (unwind_find_function(address, &start, &end) && is_noting(start))
		append(start);
}

static void show_guest(void *context, const struct guest_frame *frame)
{
	const struct vm_layout *layout = truth.vm.layout;
	uint32_t first_line;

	(void)context;
	if (frame->kind == GUEST_C_FUNCTION && is_noting(frame->c_function))
		append(frame->c_function);
	if (frame->kind != GUEST_LUA_FUNCTION ||
	    !load_u32(frame->prototype + layout->object.prototype.first_line,
	              &first_line))
		return;
	if (is_noting(first_line))
		append(first_line);
	if (frame->compiled) {
		truth.walked.in_trace = true;
		truth.walked.below_trace = truth.walked.count;
	}
}

static void show_marker(void *context, enum frame_marker marker,
                        uint32_t frame_count)
{
	(void)context;
	(void)frame_count;
	truth.is_marked = true;
	truth.marker = marker;
}

/* From the root on the same functions; the innermost one may lack its note. */
static bool is_true(const struct frames *walked)
{
	size_t count = walked->count, i;

	if (count && walked->ids[0] == (uint64_t)truth_never)
		return false;
	if (count != truth_notes.depth && count != truth_notes.depth + 1)
		return false;
	for (i = 0; i < truth_notes.depth; i++)
		if (walked->ids[count - 1 - i] != truth_notes.ids[i])
			return false;
	return true;
}

/* Of functions in a trace only a snapshot is known, which may be older or newer
 * than the notes by a call or return: judged is what lies below the trace. */
static bool is_true_below_trace(const struct frames *walked)
{
	size_t count = walked->count, i;

	if (!walked->in_trace)
		return is_true(walked);
	for (i = 0; i < count - walked->below_trace; i++)
		if (i >= truth_notes.depth ||
		    walked->ids[count - 1 - i] != truth_notes.ids[i])
			return false;
	return true;
}

static void judge(void)
{
	truth.sample_count++;
	if (truth_notes.throwing) {
		truth.unjudged_count++;
		return;
	}
	if (truth.is_marked) {
		truth.marked_by_kind[truth.marker]++;
		truth.marked_count++;
		return;
	}
	if (is_true_below_trace(&truth.walked))
		return;
	if (truth.wrong_count < KEPT_MAX)
		truth.kept[truth.wrong_count] =
			(struct kept){truth.walked, truth_notes};
	truth.wrong_count++;
}

static void handle_sample(int signal, siginfo_t *info, void *context)
{
	static const struct walk_visitor visitor = {
		.native = show_native,
		.guest = show_guest,
		.marker = show_marker,
	};
	struct walk_facts facts;
	int saved_errno = errno;

	(void)signal;
	(void)info;
	truth.walked.count = 0;
	truth.walked.in_trace = false;
	truth.is_marked = false;
	walk_stack(&truth.walk, &truth.vm, context, &visitor, NULL, &facts);
	judge();
	errno = saved_errno;
}

/* ---- functions that note -------------------------------------------------- */

static void enter(void *function)
{
	truth_notes.ids[truth_notes.depth] = (uint64_t)function;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*(volatile uint32_t *)&truth_notes.depth = truth_notes.depth + 1;
}

static void leave(void)
{
	*(volatile uint32_t *)&truth_notes.depth = truth_notes.depth - 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void burn(int count)
{
	volatile int i;

	for (i = 0; i < count; i++)
		;
}

/* note(line): the Lua function that is defined there notes, too. */
static int truth_note(lua_State *L)
{
	uint64_t line = (uint64_t)luaL_checknumber(L, 1);

	if (!is_noting(line) && truth.function_count < FUNCTIONS_MAX)
		truth.functions[truth.function_count++] = line;
	return 0;
}

/* Called by Lua: call another Lua function in every way that there is. */

EXPORTED int truth_call(lua_State *L);
EXPORTED int truth_pcall(lua_State *L);
EXPORTED int truth_cpcall(lua_State *L);
EXPORTED int truth_resume(lua_State *L);
EXPORTED int truth_other(lua_State *L);
EXPORTED int truth_give(lua_State *L);

int truth_call(lua_State *L)
{
	enter(truth_call);
	burn(50);
	lua_call(L, lua_gettop(L) - 1, 0);
	leave();
	return 0;
}

int truth_pcall(lua_State *L)
{
	uint32_t depth;

	enter(truth_pcall);
	depth = truth_notes.depth;
	lua_pcall(L, lua_gettop(L) - 1, 0, 0);
	*(volatile uint32_t *)&truth_notes.depth = depth;
	*(volatile uint32_t *)&truth_notes.throwing = 0;
	burn(50);
	leave();
	return 0;
}

static int call_first(lua_State *L)
{
	enter(call_first);
	lua_getfield(L, LUA_REGISTRYINDEX, "truth function");
	lua_call(L, 0, 0);
	leave();
	return 0;
}

int truth_cpcall(lua_State *L)
{
	enter(truth_cpcall);
	lua_pushvalue(L, 1);
	lua_setfield(L, LUA_REGISTRYINDEX, "truth function");
	lua_cpcall(L, call_first, NULL);
	burn(20);
	leave();
	return 0;
}

int truth_resume(lua_State *L)
{
	lua_State *coroutine;

	enter(truth_resume);
	coroutine = lua_newthread(L);
	lua_pushvalue(L, 1);
	lua_xmove(L, coroutine, 1);
	lua_resume(coroutine, 0);
	burn(20);
	leave();
	return 0;
}

int truth_give(lua_State *L)
{
	enter(truth_give);
	burn(20);
	leave();
	lua_settop(L, 1);
	return 1;
}

int truth_never(lua_State *L)
{
	(void)L;
	return 0;
}

/* Goes on in the second VM, which has no third one to go on in. */
int truth_other(lua_State *L)
{
	lua_State *other = truth.other;

	enter(truth_other);
	if (lua_topointer(L, LUA_REGISTRYINDEX) ==
	    lua_topointer(other, LUA_REGISTRYINDEX))
		other = L;
	lua_getglobal(other, "start");
	lua_call(other, 0, 0);
	burn(20);
	leave();
	return 0;
}

/* Called through the FFI. */

EXPORTED void truth_callback(void (*function)(void));
EXPORTED void truth_burn(int count);

void truth_callback(void (*function)(void))
{
	enter(truth_callback);
	function();
	leave();
	burn(1); /* no tail call */
}

void truth_burn(int count)
{
	enter(truth_burn);
	burn(count);
	leave();
}

/* ---- running -------------------------------------------------------------- */

static void fail(const char *what, const char *why)
{
	printf("FAIL: %s: %s\n", what, why);
	exit(1);
}

static void register_functions(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"call", truth_call},
		{"pcall", truth_pcall},
		{"cpcall", truth_cpcall},
		{"resume", truth_resume},
		{"note", truth_note},
		{"other", truth_other},
		{"give", truth_give},
		{"never", truth_never},
		{NULL, NULL},
	};
	void *const noting[] = {truth_call,   truth_pcall, truth_cpcall,
	                        truth_resume, truth_other, truth_callback,
	                        truth_burn,   truth_give,  truth_never,
	                        call_first};
	size_t i;

	luaL_register(L, "truth", functions);
	lua_pop(L, 1);
	truth.function_count = 0;
	for (i = 0; i < sizeof(noting) / sizeof(noting[0]); i++)
		truth.functions[truth.function_count++] = (uint64_t)noting[i];
}

static void print_kept(const struct kept *kept)
{
	size_t i;

	printf("walked:");
	for (i = kept->walked.count; i-- > 0;)
		printf(" %llx", (unsigned long long)kept->walked.ids[i]);
	printf("\nnoted: ");
	for (i = 0; i < kept->notes.depth; i++)
		printf(" %llx", (unsigned long long)kept->notes.ids[i]);
	printf("\n");
}

/* Another one each time, unless TRUTH_SEED says which. */
static long truth_seed(void)
{
	const char *given = getenv("TRUTH_SEED");
	static long seed;

	if (!seed)
		seed = given ? atol(given) : (long)time(NULL);
	return seed;
}

static lua_State *open_program(const char *mode)
{
	lua_State *L = luaL_newstate();
	char path[4096];

	luaL_openlibs(L);
	register_functions(L);
	snprintf(path, sizeof(path), "%s/tests/truth/truth.lua",
	         getenv("top_srcdir") ? getenv("top_srcdir") : ".");
	if (luaL_dofile(L, path))
		fail(path, lua_tostring(L, -1));
	lua_getglobal(L, "prepare");
	lua_pushstring(L, mode);
	lua_pushnumber(L, (lua_Number)truth_seed());
	lua_call(L, 2, 0);
	return L;
}

static void run(lua_State *L)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
	struct sample_clock clock;
	struct error error;

	action.sa_sigaction = handle_sample;
	sigaction(SIGPROF, &action, NULL);
	if (sample_clock_open(&clock, SAMPLE_CLOCK_PERF, gettid(), INTERVAL_NS,
	                      &error) ||
	    sample_clock_start(&clock, &error))
		fail("clock", error.text);
	lua_getglobal(L, "run");
	lua_pushnumber(L, SECONDS);
	if (lua_pcall(L, 1, 0, 0))
		fail("run", lua_tostring(L, -1));
	sample_clock_stop(&clock);
	sample_clock_close(&clock);
}

/* Nothing is shown by what never ran. */
static void demand_all(const char *mode)
{
	size_t i;

	for (i = 0; i < truth.function_count; i++) {
		if (truth.seen_count[i] ||
		    truth.functions[i] == (uint64_t)truth_never)
			continue;
		printf("%llx is on no stack\n",
		       (unsigned long long)truth.functions[i]);
		fail(mode, "a function was never seen");
	}
}

static void test_mode(const char *mode)
{
	lua_State *L;
	struct error error;
	size_t i;

	memset(&truth, 0, sizeof(truth));
	memset(&truth_notes, 0, sizeof(truth_notes));
	truth.other = open_program(mode);
	L = open_program(mode);
	if (vm_open(&truth.vm, L, &error) || load_faults_catch(&error) ||
	    unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error))
		fail("start", error.text);
	run(L);
	load_faults_release();
	lua_close(L);
	lua_close(truth.other);
	printf("JIT %s, seed %ld: %llu samples, %llu in errors, %llu marked, "
	       "%llu "
	       "wrong\n",
	       mode, truth_seed(), (unsigned long long)truth.sample_count,
	       (unsigned long long)truth.unjudged_count,
	       (unsigned long long)truth.marked_count,
	       (unsigned long long)truth.wrong_count);
	for (i = 0; i < MARKER_COUNT; i++)
		if (truth.marked_by_kind[i])
			printf("  marker %zu: %llu\n", i,
			       (unsigned long long)truth.marked_by_kind[i]);
	for (i = 0; i < truth.wrong_count && i < KEPT_MAX; i++)
		print_kept(&truth.kept[i]);
	if (truth.sample_count < SAMPLES_MIN &&
	    truth.sample_count < SECONDS * 200)
		fail(mode, "too few samples");
	if (truth.unjudged_count * 100 > truth.sample_count * UNJUDGED_PER_100)
		fail(mode, "too many samples are not judged");
	if (truth.marked_count * 200 > truth.sample_count)
		fail(mode, "more than 0.5 % are not whole");
	if (truth.wrong_count > 0)
		fail(mode, "the walk is not the truth");
	if (truth.sample_count >= SAMPLES_MIN)
		demand_all(mode);
}

int main(void)
{
	test_mode("off");
	test_mode("on");
	return 0;
}
