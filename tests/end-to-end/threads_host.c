// SPDX-License-Identifier: MIT
/*
 * A host with several VMs and threads, for threads.sh and perf-traces.sh. Its
 * first argument says which case; it writes dumps into the current directory and
 * prints what the script compares them with. Ends with 1 and the reason if a call
 * fails.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "lmisclib.h"

#define THREADS_MAX 32

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void run_named(lua_State *L, const char *chunk, const char *name)
{
	if (luaL_loadbuffer(L, chunk, strlen(chunk), name) ||
	    lua_pcall(L, 0, 0, 0))
		fail(chunk, lua_tostring(L, -1));
}

static void run(lua_State *L, const char *chunk)
{
	run_named(L, chunk, "@run.lua");
}

/* A VM that can burn(seconds) of its thread's CPU time, in functions that are
 * known by their chunk, work_NAME.lua. */
static lua_State *open_vm(const char *name)
{
	lua_State *L = luaL_newstate();
	char chunk_name[40];

	luaL_openlibs(L);
	luaM_open_misc(L);
	lua_settop(L, 0);
	snprintf(chunk_name, sizeof(chunk_name), "@work_%s.lua", name);
	run_named(L,
	          "local ffi = require 'ffi'\n"
	          "ffi.cdef 'typedef struct { long s, n; } cpu_time;"
	          " int clock_gettime(int, cpu_time *);'\n"
	          "local now = ffi.new 'cpu_time'\n"
	          "local function seconds()\n"
	          "  ffi.C.clock_gettime(3, now)\n"
	          "  return tonumber(now.s) + tonumber(now.n) / 1e9\n"
	          "end\n"
	          "local function work(n)\n"
	          "  local s = 0\n"
	          "  for i = 1, n do s = s + i % 7 end\n"
	          "  return s\n"
	          "end\n"
	          "function burn(time)\n"
	          "  local start = seconds()\n"
	          "  repeat work(20000) until seconds() - start > time\n"
	          "end\n",
	          chunk_name);
	return L;
}

struct worker {
	pthread_t thread;
	char name[16];
	const char *chunks[4];  /* run one after the other */
	pthread_barrier_t *end; /* what the VM waits for; NULL: nothing */
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	lua_State *L = open_vm(worker->name);

	pthread_setname_np(pthread_self(), worker->name);
	lua_pushstring(L, worker->name);
	lua_setglobal(L, "name");
	for (size_t i = 0; i < 4 && worker->chunks[i]; i++)
		run(L, worker->chunks[i]);
	if (worker->end)
		pthread_barrier_wait(worker->end);
	lua_close(L);
	return NULL;
}

static void start_worker(struct worker *worker, const char *prefix, int number)
{
	snprintf(worker->name, sizeof(worker->name), "%s%d", prefix, number);
	if (pthread_create(&worker->thread, NULL, work, worker) != 0)
		fail("pthread_create", worker->name);
}

/* A session for each VM, all at once. */
static void profile_each_vm(int count)
{
	struct worker workers[THREADS_MAX] = {0};

	for (int i = 0; i < count; i++) {
		workers[i].chunks[0] =
			"assert(misc.sysprof.start { mode = 'C', interval = 1,"
			" path = name .. '.bin' })";
		workers[i].chunks[1] =
			"assert(not misc.sysprof.start { mode = 'D' })"
			"assert(not misc.sysprof.start { mode = 'D',"
			" scope = 'process' })"
			"burn(0.2)";
		workers[i].chunks[2] =
			"local report = misc.sysprof.report()"
			"assert(report.running and report.threads == 1)"
			"assert(misc.sysprof.stop())"
			"assert(misc.sysprof.stop() == nil)";
		start_worker(&workers[i], "own", i);
	}
	for (int i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

/* A VM runs on one thread after the other. */
static void *burn_on_thread(void *argument)
{
	run(argument, "burn(0.3)");
	return NULL;
}

static void move_vm(lua_State *L)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, burn_on_thread, L);
		pthread_join(thread, NULL);
	}
}

/* One session for all VMs, those that come later, and those that move. */
static void profile_process(int count)
{
	struct worker early[THREADS_MAX] = {0}, late[THREADS_MAX] = {0};
	lua_State *L = open_vm("main"), *moving = open_vm("moving");

	for (int i = 0; i < count; i++) {
		early[i].chunks[0] = "burn(0.4)";
		start_worker(&early[i], "early", i);
	}
	run(L, "assert(misc.sysprof.start { mode = 'C', interval = 1,"
	       " overhead = 100,"
	       " path = 'process.bin', scope = 'process' })"
	       "assert(not misc.sysprof.start { mode = 'D' })");
	for (int i = 0; i < count; i++) {
		late[i].chunks[0] = "assert(not misc.sysprof.start())"
				    "burn(0.4)"
				    "assert(misc.sysprof.report().running)";
		start_worker(&late[i], "late", i);
	}
	move_vm(moving);
	run(L, "burn(0.2)");
	for (int i = 0; i < count; i++) {
		pthread_join(early[i].thread, NULL);
		pthread_join(late[i].thread, NULL);
	}
	lua_close(moving);
	run(L, "assert(misc.sysprof.report().missed_threads == 0)"
	       "assert(misc.sysprof.stop())"
	       "print(misc.sysprof.report().samples)");
	lua_close(L);
}

/* One session for all VMs, in which perf is told of the traces of each: of VMs
 * that come later, and of those that ask a question meanwhile. Flushes of one
 * leave the others alone. No VM ends, and so none gets the memory of another. */
static void profile_for_perf(const char *kind)
{
	struct worker early = {0}, late[2] = {0};
	pthread_barrier_t end;
	lua_State *L = open_vm("main");
	char start[200];

	pthread_setname_np(pthread_self(), "main");
	pthread_barrier_init(&end, NULL, 4);
	early.end = late[0].end = late[1].end = &end;
	early.chunks[0] =
		"repeat burn(0.05) until misc.sysprof.report().samples > 0 "
		"misc.sysprof.report() burn(0.5)";
	start_worker(&early, "early", 0);
	snprintf(start, sizeof(start),
	         "burn(0.1)"
	         "assert(misc.sysprof.start { mode = 'C', interval = 100,"
	         " path = 'perf.bin', scope = 'process', perf = '%s' })",
	         kind);
	run(L, start);
	late[0].chunks[0] = "for i = 1, 10 do burn(0.05) jit.flush() end "
			    "burn(0.1)";
	late[1].chunks[0] = "burn(0.5)";
	start_worker(&late[0], "late", 0);
	start_worker(&late[1], "late", 1);
	run(L,
	    "burn(0.5)"
	    "local function more() local s = 1 for i = 1, 1e5 do s = s * 3 % 7"
	    " end end more() burn(0.1)");
	pthread_barrier_wait(&end);
	pthread_join(early.thread, NULL);
	pthread_join(late[0].thread, NULL);
	pthread_join(late[1].thread, NULL);
	run(L, "assert(misc.sysprof.stop())");
	lua_close(L);
}

/* Threads come and go all the time. */
static void profile_churn(void)
{
	lua_State *L = open_vm("main");

	run(L, "assert(misc.sysprof.start { mode = 'C', interval = 0.2,"
	       " overhead = 100,"
	       " path = 'churn.bin', scope = 'process' })");
	for (int round = 0; round < 40; round++) {
		struct worker workers[4] = {0};

		for (int i = 0; i < 4; i++) {
			workers[i].chunks[0] = "burn(0.02)";
			start_worker(&workers[i], "churn", i);
		}
		for (int i = 0; i < 4; i++)
			pthread_join(workers[i].thread, NULL);
	}
	run(L, "local till = os.time() + 10 "
	       "while misc.sysprof.report().threads > 8 do"
	       " assert(os.time() < till, 'threads that ended are kept') end "
	       "assert(misc.sysprof.stop())"
	       "print(misc.sysprof.report().samples)");
	lua_close(L);
}

/* Threads with the least stack that makes sense. */
static void profile_small_stacks(void)
{
	struct worker workers[4] = {0};
	lua_State *L = open_vm("main");
	pthread_attr_t attributes;

	run(L, "assert(misc.sysprof.start { mode = 'C', interval = 0.1,"
	       " overhead = 100,"
	       " path = 'small.bin', scope = 'process' })");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (int i = 0; i < 4; i++) {
		workers[i].chunks[0] = "burn(0.3)";
		snprintf(workers[i].name, sizeof(workers[i].name), "small%d",
		         i);
		if (pthread_create(&workers[i].thread, &attributes, work,
		                   &workers[i]) != 0)
			fail("pthread_create", workers[i].name);
	}
	pthread_attr_destroy(&attributes);
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i].thread, NULL);
	run(L, "assert(misc.sysprof.stop())"
	       "print(misc.sysprof.report().samples)");
	lua_close(L);
}

/* A thread that never runs Lua, beside a VM in compiled code. */
static _Atomic bool native_ends;
static _Atomic uint64_t native_rounds;

__attribute__((noinline)) static void burn_natively(void)
{
	for (int i = 0; i < 100000; i++)
		atomic_fetch_add_explicit(&native_rounds, 1,
		                          memory_order_relaxed);
}

static void *run_natively(void *argument)
{
	while (!native_ends)
		burn_natively();
	return argument;
}

static void profile_native(void)
{
	pthread_t thread;
	lua_State *L = open_vm("main");

	if (pthread_create(&thread, NULL, run_natively, NULL) != 0)
		fail("pthread_create", "native");
	run(L, "burn(0.1)"
	       "assert(misc.sysprof.start { mode = 'C', interval = 1,"
	       " overhead = 100,"
	       " path = 'native.bin', scope = 'process' })"
	       "burn(1)"
	       "assert(misc.sysprof.stop())");
	native_ends = true;
	pthread_join(thread, NULL);
	lua_close(L);
}

/* VMs in each other on one stack, two of them with a session of their own. */
static lua_State *inner;

static int call_inner(lua_State *L)
{
	(void)L;
	run(inner, "enter()");
	return 0;
}

static void profile_nested(void)
{
	lua_State *outer = open_vm("outer");

	inner = open_vm("inner");
	lua_register(outer, "call_inner", call_inner);
	run_named(outer, "function enter() call_inner() return 1 end",
	          "@enter_outer.lua");
	run_named(inner, "function enter() burn(0.3) return 1 end",
	          "@enter_inner.lua");
	run(outer, "assert(misc.sysprof.start { mode = 'C', interval = 1,"
	           " path = 'outer.bin' })");
	run(inner, "assert(misc.sysprof.start { mode = 'C', interval = 1,"
	           " path = 'inner.bin' })");
	run(outer, "enter()");
	lua_close(inner); /* ends its session, not the other one */
	run(outer, "assert(misc.sysprof.report().running)"
	           "assert(misc.sysprof.stop())");
	lua_close(outer);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int count = argc > 2 ? atoi(argv[2]) : 4;

	if (count > THREADS_MAX)
		count = THREADS_MAX;
	if (strcmp(what, "each") == 0)
		profile_each_vm(count);
	else if (strcmp(what, "process") == 0)
		profile_process(count);
	else if (strcmp(what, "churn") == 0)
		profile_churn();
	else if (strcmp(what, "small") == 0)
		profile_small_stacks();
	else if (strcmp(what, "nested") == 0)
		profile_nested();
	else if (strcmp(what, "native") == 0)
		profile_native();
	else if (strcmp(what, "perf") == 0)
		profile_for_perf(argc > 2 ? argv[2] : "map");
	else
		fail("usage", "threads_host "
		              "each|process|churn|small|nested|native|perf");
	return 0;
}
