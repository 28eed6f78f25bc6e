// SPDX-License-Identifier: MIT
/*
 * A host in C that uses all of lmisclib.h, linked to libluajit and the library
 * as any host is. Ends at the first answer that is not the promised one.
 */
#include <lmisclib.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lualib.h>

#define STREAM_BYTES_MAX (16u << 20)
#define HEAD             "ljs\3\0\0\0\x80ljp\2\0\0\0"
#define HEAD_BYTES       15

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			fail(__LINE__, #condition);                            \
	} while (0)

static void fail(int line, const char *condition)
{
	fprintf(stderr, "c_api_host.c:%d: %s\n  errno: %s\n  last error: %s\n",
	        line, condition, strerror(errno), luaM_sysprof_last_error());
	exit(1);
}

/* What the callbacks have seen. */
static struct sink {
	uint8_t *bytes; /* of STREAM_BYTES_MAX */
	size_t used;
	size_t limit;      /* takes no more than that */
	size_t longest;    /* most that it was offered at once */
	bool takes_buffer; /* NULL at the limit */
	bool asks_back;    /* calls the API from the writer */
	int answer_to_stop;
	int answer_to_report;
	lua_State *L;
	unsigned writes;
	unsigned stops;
	uint8_t *stopped_buffer;
	int stop_result;
} sink;

static uint8_t buffer[4096];

static size_t take(const void **data, size_t bytes, void *context)
{
	struct sink *to = context;
	size_t room = to->limit - to->used;
	size_t taken = bytes < room ? bytes : room;
	struct luam_Sysprof_Counters counters;

	to->writes++;
	if (bytes > to->longest)
		to->longest = bytes;
	memcpy(to->bytes + to->used, *data, taken);
	to->used += taken;
	if (to->asks_back) {
		to->answer_to_stop = luaM_sysprof_stop(to->L);
		to->answer_to_report = luaM_sysprof_report(&counters);
	}
	if (taken == bytes)
		return taken;
	errno = ENOBUFS;
	if (to->takes_buffer)
		*data = NULL;
	return taken;
}

static int count_stop(void *context, uint8_t *released)
{
	struct sink *to = context;

	to->stops++;
	to->stopped_buffer = released;
	if (to->stop_result != 0)
		errno = EDQUOT;
	return to->stop_result;
}

static void reset_sink(void)
{
	uint8_t *bytes = sink.bytes ? sink.bytes : malloc(STREAM_BYTES_MAX);

	CHECK(bytes);
	memset(&sink, 0, sizeof(sink));
	sink.bytes = bytes;
	sink.limit = STREAM_BYTES_MAX;
}

static struct luam_Sysprof_Options options_for(uint8_t mode)
{
	reset_sink();
	return (struct luam_Sysprof_Options){
		.mode = mode,
		.interval = 1,
		.buf = buffer,
		.len = sizeof(buffer),
		.ctx = &sink,
	};
}

static lua_State *new_vm(void)
{
	lua_State *L = luaL_newstate();

	CHECK(L);
	luaL_openlibs(L);
	return L;
}

static void burn(lua_State *L, int cpu_ms)
{
	static const char source[] =
		"local ms = ...\n"
		"local start, sum = os.clock(), 0\n"
		"repeat\n"
		"  for i = 1, 10000 do sum = sum + i % 7 end\n"
		"until os.clock() - start > ms / 1000\n";

	CHECK(luaL_loadstring(L, source) == 0);
	lua_pushinteger(L, cpu_ms);
	CHECK(lua_pcall(L, 1, 0, 0) == 0);
}

static bool error_has(const char *text)
{
	return strstr(luaM_sysprof_last_error(), text) != NULL;
}

static bool is_whole_stream(void)
{
	return sink.used > HEAD_BYTES &&
	       memcmp(sink.bytes, HEAD, HEAD_BYTES) == 0 &&
	       sink.bytes[sink.used - 1] == 0x80;
}

static uint64_t sample_count(void)
{
	struct luam_Sysprof_Counters counters;

	CHECK(luaM_sysprof_report(&counters) == PROFILE_SUCCESS);
	CHECK(counters.samples ==
	      counters.vmst_interp + counters.vmst_lfunc + counters.vmst_ffunc +
	              counters.vmst_cfunc + counters.vmst_gc +
	              counters.vmst_exit + counters.vmst_record +
	              counters.vmst_opt + counters.vmst_asm +
	              counters.vmst_trace);
	return counters.samples;
}

static bool is_idle(lua_State *L)
{
	return luaM_sysprof_stop(L) == PROFILE_ERRRUN &&
	       error_has("profiler is not running");
}

/* ---- before and around a start ----------------------------------------------- */

static void ask_before_the_first_start(lua_State *L)
{
	CHECK(strcmp(luaM_sysprof_last_error(), "") == 0);
	CHECK(sample_count() == 0);
	CHECK(luaM_sysprof_report(NULL) == PROFILE_ERRUSE);
	CHECK(error_has("counters must not be NULL"));
	CHECK(is_idle(L));
}

/* Fails for this reason; the callback is told of it where there is one. */
static void refuse(lua_State *L, const struct luam_Sysprof_Options *options,
                   int code, const char *text, unsigned stops)
{
	unsigned before = sink.stops;

	CHECK(luaM_sysprof_start(L, options) == code);
	if (!error_has(text))
		fail(__LINE__, text);
	CHECK(sink.stops == before + stops);
	CHECK(stops == 0 || sink.stopped_buffer == options->buf);
}

static void start_without_callbacks(lua_State *L)
{
	struct luam_Sysprof_Options options =
		options_for(LUAM_SYSPROF_CALLGRAPH);

	refuse(L, &options, PROFILE_ERRUSE, "luaM_sysprof_set_writer()", 0);
	CHECK(luaM_sysprof_set_writer(NULL) == PROFILE_ERRUSE);
	CHECK(error_has("writer callback must not be NULL"));
	CHECK(luaM_sysprof_set_writer(take) == PROFILE_SUCCESS);
	refuse(L, &options, PROFILE_ERRUSE, "luaM_sysprof_set_on_stop()", 0);
	CHECK(luaM_sysprof_set_on_stop(NULL) == PROFILE_ERRUSE);
	CHECK(error_has("on_stop callback must not be NULL"));

	/* Mode DEFAULT needs nothing at all. */
	options = (struct luam_Sysprof_Options){.interval = 1};
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 100);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(sample_count() > 0);
	CHECK(luaM_sysprof_set_on_stop(count_stop) == PROFILE_SUCCESS);
}

static void start_with_wrong_options(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(3);

	/* In the promised order: each line repairs the first fault. */
	options.buf = NULL;
	options.interval = 0;
	refuse(L, &options, PROFILE_ERRUSE, "mode must be", 1);
	options.mode = LUAM_SYSPROF_LEAF;
	refuse(L, &options, PROFILE_ERRUSE, "got buf NULL", 1);
	options.buf = buffer;
	options.len = 0;
	refuse(L, &options, PROFILE_ERRUSE, "got len 0", 1);
	options.len = 1;
	refuse(L, &options, PROFILE_ERRUSE,
	       "interval must be from 1 to 3600000 milliseconds, got 0", 1);
	options.interval = UINT64_MAX;
	refuse(L, &options, PROFILE_ERRUSE, "got 18446744073709551615", 1);
	options.interval = 1;
	refuse(NULL, &options, PROFILE_ERRUSE, "lua_State must not be NULL", 1);
	CHECK(luaM_sysprof_start(L, NULL) == PROFILE_ERRUSE);
	CHECK(error_has("options must not be NULL"));
	CHECK(is_idle(L));
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* SIGURG is the signal unless the host uses it; then it is SIGPROF. */
static void start_where_signals_are_taken(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	struct itimerval timer = {.it_value = {.tv_sec = 1000}};
	struct itimerval off = {.it_value = {.tv_sec = 0}};
	struct sigaction action;
	sigset_t set;

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	CHECK(sigaction(SIGURG, NULL, &action) == 0);
	CHECK(action.sa_handler != SIG_DFL);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(sigaction(SIGURG, NULL, &action) == 0);
	CHECK(action.sa_handler == SIG_DFL);
	signal(SIGURG, ignore_signal);
	signal(SIGPROF, ignore_signal);
	refuse(L, &options, PROFILE_ERRUSE, "SIGPROF has a handler", 1);
	CHECK(sigaction(SIGPROF, NULL, &action) == 0);
	CHECK(action.sa_handler == ignore_signal);
	signal(SIGPROF, SIG_DFL);

	CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
	refuse(L, &options, PROFILE_ERRUSE, "ITIMER_PROF is running", 1);
	CHECK(setitimer(ITIMER_PROF, &off, NULL) == 0);

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	refuse(L, &options, PROFILE_ERRUSE, "SIGPROF is blocked", 1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK(is_idle(L));
}

/* ---- whole profiles -------------------------------------------------------------- */

static void profile_mode(lua_State *L, uint8_t mode, size_t buffer_bytes)
{
	struct luam_Sysprof_Options options = options_for(mode);

	options.len = buffer_bytes;
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	CHECK(sink.used >= HEAD_BYTES);
	burn(L, 200);
	CHECK(sample_count() > 0);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(is_whole_stream());
	CHECK(sink.stops == 1 && sink.stopped_buffer == buffer);
	CHECK(sink.longest <= buffer_bytes);
	CHECK(sample_count() >= 30);
	CHECK(is_idle(L));
}

static void call_while_running(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	struct luam_Sysprof_Options second = options;
	uint8_t second_buffer[8];
	lua_State *other = new_vm();
	uint64_t samples;

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 100);
	samples = sample_count();
	CHECK(luaM_sysprof_set_writer(take) == PROFILE_ERRUSE);
	CHECK(error_has("cannot be changed while a profile is running"));
	CHECK(luaM_sysprof_set_on_stop(count_stop) == PROFILE_ERRUSE);
	CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_ERRUSE);
	second.buf = second_buffer;
	second.mode = 9;
	refuse(L, &second, PROFILE_ERRRUN, "profiler is running already", 1);
	CHECK(luaM_sysprof_stop(other) == PROFILE_ERRUSE);
	CHECK(error_has("another Lua VM"));
	lua_close(other);
	burn(L, 100);
	CHECK(sample_count() > samples + 20);
	CHECK(luaM_sysprof_stop(lua_newthread(L)) == PROFILE_SUCCESS);
	lua_pop(L, 1);
	CHECK(is_whole_stream() && sink.stops == 2);
}

static void close_vm_while_running(void)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	lua_State *L = new_vm();
	uint64_t samples;

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 100);
	lua_close(L);
	CHECK(is_whole_stream() && sink.stops == 1);
	samples = sample_count();
	CHECK(samples > 0);
	L = new_vm();
	CHECK(is_idle(L));
	burn(L, 50);
	CHECK(sample_count() == samples);
	lua_close(L);
}

/* ---- failing callbacks ------------------------------------------------------------- */

static void fail_head(lua_State *L, bool takes_buffer, const char *text)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);

	sink.limit = 5;
	sink.takes_buffer = takes_buffer;
	errno = 0;
	refuse(L, &options, PROFILE_ERRIO, text, 1);
	CHECK(errno == ENOBUFS);
	CHECK(sample_count() == 0);
	CHECK(is_idle(L));
}

static void fail_later(lua_State *L, bool takes_buffer, const char *text)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	unsigned writes;

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	sink.takes_buffer = takes_buffer;
	sink.limit = sink.used + 100;
	burn(L, 1500);
	writes = sink.writes;
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_ERRRUN);
	errno = 0;
	CHECK(luaM_sysprof_stop(L) == PROFILE_ERRIO);
	CHECK(errno == ENOBUFS && error_has(text));
	CHECK(sink.stops == 2 && sink.writes == writes);
	CHECK(is_idle(L));
}

static void fail_in_on_stop(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);

	sink.stop_result = 1;
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 50);
	errno = 0;
	CHECK(luaM_sysprof_stop(L) == PROFILE_ERRIO);
	CHECK(errno == EDQUOT && error_has("on_stop callback failed"));
	CHECK(is_whole_stream() && sink.stops == 1);
	CHECK(is_idle(L));
}

/* Must not hang: the profile holds no lock while it calls the host. */
static void call_back_from_the_writer(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	sink.L = L;
	sink.asks_back = true;
	burn(L, 1000);
	CHECK(sink.answer_to_stop == PROFILE_ERRUSE);
	CHECK(sink.answer_to_report == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(is_whole_stream());
}

/* ---- the backtracer ------------------------------------------------------------------ */

#define BACKTRACED_FRAMES 12

static volatile sig_atomic_t backtraces;
static volatile sig_atomic_t backtraces_refused;

static void *backtraced_address(int number)
{
	return (void *)(uintptr_t)(0x123400000 + number);
}

static void backtrace_fixed(void *(*frame_writer)(int frame_no, void *addr))
{
	backtraces++;
	for (int i = 1; i <= BACKTRACED_FRAMES; i++) {
		if (frame_writer(i, backtraced_address(i)))
			continue;
		backtraces_refused++;
		return;
	}
}

static size_t encode(uint8_t *to, uint64_t value)
{
	size_t bytes = 0;

	while (value >= 0x80) {
		to[bytes++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	to[bytes++] = (uint8_t)value;
	return bytes;
}

/* How often the stream holds the addresses first to last of the backtracer,
 * one behind the other. */
static unsigned count_backtraced(int first, int last, bool with_end)
{
	uint8_t bytes[BACKTRACED_FRAMES * 10 + 1];
	const uint8_t *at = sink.bytes;
	const uint8_t *end = sink.bytes + sink.used;
	size_t length = 0;
	unsigned found = 0;

	for (int i = first; i <= last; i++)
		length += encode(bytes + length,
		                 (uintptr_t)backtraced_address(i));
	if (with_end)
		bytes[length++] = 0;
	while ((at = memmem(at, (size_t)(end - at), bytes, length))) {
		found++;
		at += length;
	}
	return found;
}

static void use_a_backtracer(lua_State *L)
{
	struct luam_Sysprof_Options options =
		options_for(LUAM_SYSPROF_CALLGRAPH);
	uint64_t traces;
	struct luam_Sysprof_Counters counters;

	CHECK(luaM_sysprof_set_backtracer(backtrace_fixed) == PROFILE_SUCCESS);
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	CHECK(luaL_dostring(L, "jit.off()") == 0);
	burn(L, 200);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(luaL_dostring(L, "jit.on()") == 0);
	CHECK(luaM_sysprof_report(&counters) == PROFILE_SUCCESS);
	traces = counters.vmst_trace;
	CHECK(is_whole_stream());
	CHECK(backtraces > 30 && backtraces_refused == 0);
	/* Each sample with a native part has frames 7 to 12 and no others. */
	CHECK(count_backtraced(7, 12, true) == counters.samples - traces);
	for (int i = 1; i <= 6; i++)
		CHECK(count_backtraced(i, i, false) == 0);

	/* In mode LEAF no native frame is written, whoever finds them. */
	options = options_for(LUAM_SYSPROF_LEAF);
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 100);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	for (int i = 1; i <= BACKTRACED_FRAMES; i++)
		CHECK(count_backtraced(i, i, false) == 0);
	CHECK(luaM_sysprof_set_backtracer(NULL) == PROFILE_SUCCESS);
}

/* ---- processes and threads --------------------------------------------------------------- */

static void fork_while_running(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	size_t used;
	int status;
	pid_t child;

	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 100);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		used = sink.used;
		CHECK(sample_count() == 0);
		CHECK(is_idle(L));
		burn(L, 100);
		CHECK(sink.used == used && sink.stops == 0);
		CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
		burn(L, 100);
		CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
		CHECK(sample_count() > 10 && sink.stops == 1);
		lua_close(L);
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	burn(L, 100);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(is_whole_stream() && sink.stops == 1);
	CHECK(sample_count() > 30);
}

static void *stop_elsewhere(void *L)
{
	static int result;

	result = luaM_sysprof_stop(L);
	return &result;
}

static void *close_elsewhere(void *L)
{
	lua_close(L);
	return NULL;
}

static int *run_elsewhere(void *(*function)(void *), lua_State *L)
{
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, function, L) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	return result;
}

static void end_on_another_thread(void)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	lua_State *L = new_vm();
	struct sigaction action;

	for (int i = 0; i < 20; i++) {
		CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
		burn(L, 20);
		CHECK(*run_elsewhere(stop_elsewhere, L) == PROFILE_SUCCESS);
		CHECK(sigaction(SIGPROF, NULL, &action) == 0);
		CHECK(action.sa_handler == SIG_DFL);
		burn(L, 5);
	}
	CHECK(sink.stops == 20);
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 20);
	run_elsewhere(close_elsewhere, L);
	CHECK(sink.stops == 21);
	L = new_vm();
	CHECK(is_idle(L));
	lua_close(L);
}

/* The default action of a late SIGPROF would end this process. SIGURG has a
 * handler by now. */
static void start_and_stop_often(lua_State *L)
{
	struct luam_Sysprof_Options options;
	struct sigaction action;

	for (int i = 0; i < 300; i++) {
		options = options_for((uint8_t)(i % 3));
		signal(SIGPROF, i % 2 ? SIG_DFL : SIG_IGN);
		CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
		burn(L, i % 4);
		CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
		CHECK(sigaction(SIGPROF, NULL, &action) == 0);
		CHECK(action.sa_handler == (i % 2 ? SIG_DFL : SIG_IGN));
		CHECK(i % 3 == 0 || is_whole_stream());
	}
	signal(SIGPROF, SIG_DFL);
}

/* What waits behind a mask when the profile stops must not be delivered to the
 * default action later. */
static void stop_while_signals_are_blocked(lua_State *L)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	burn(L, 50);
	CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPROF));
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPROF));
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK(is_whole_stream());
}

/* A limit of 0 makes the call fail that would open this clock. */
static void profile_with_clock(lua_State *L, const char *name, int resource,
                               struct rlimit *before)
{
	struct luam_Sysprof_Options options =
		options_for(LUAM_SYSPROF_CALLGRAPH);
	struct rlimit none;

	CHECK(getrlimit(resource, before) == 0);
	none = *before;
	none.rlim_cur = 0;
	CHECK(setrlimit(resource, &none) == 0);
	options.interval = 10;
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	burn(L, 500);
	CHECK(luaM_sysprof_stop(L) == PROFILE_SUCCESS);
	CHECK(is_whole_stream() && sink.stops == 1);
	CHECK(memmem(sink.bytes, sink.used, name, strlen(name)));
	CHECK(sample_count() >= 15 && sample_count() <= 90);
}

static void fall_back_to_other_clocks(lua_State *L)
{
	struct rlimit files, signals;
	struct itimerval timer;

	profile_with_clock(L, "\x10thread CPU timer", RLIMIT_NOFILE, &files);
	profile_with_clock(L, "\x0dprocess timer", RLIMIT_SIGPENDING, &signals);
	CHECK(getitimer(ITIMER_PROF, &timer) == 0);
	CHECK(timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0);
	CHECK(setrlimit(RLIMIT_SIGPENDING, &signals) == 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
}

/* ---- C and Lua share the one profile -------------------------------------------------------- */

static void stop_from_lua(void)
{
	struct luam_Sysprof_Options options = options_for(LUAM_SYSPROF_LEAF);
	lua_State *L = new_vm();

	lua_getglobal(L, "package");
	lua_getfield(L, -1, "preload");
	lua_pushcfunction(L, luaM_open_misc);
	lua_setfield(L, -2, "misc");
	lua_pushcfunction(L, luaM_open_misc_sysprof);
	lua_setfield(L, -2, "misc.sysprof");
	lua_pop(L, 2);
	CHECK(luaM_sysprof_start(L, &options) == PROFILE_SUCCESS);
	CHECK(luaL_dostring(L, "local s = require 'misc.sysprof'\n"
	                       "assert(s == require 'misc'.sysprof)\n"
	                       "assert(s.report().running)\n"
	                       "assert(not s.start())\n"
	                       "assert(s.stop())\n") == 0);
	CHECK(is_whole_stream() && sink.stops == 1);
	CHECK(is_idle(L));
	lua_close(L);
}

/* misc.so is unloaded with its VM; the profile and its handler stay. */
static void outlive_the_module(void)
{
	lua_State *L = new_vm();

	for (int i = 0; i < 3; i++) {
		CHECK(luaL_dostring(L, "local s = require 'misc'.sysprof\n"
		                       "assert(s.start { mode = 'D' })") == 0);
		burn(L, 50);
		lua_close(L);
		L = new_vm();
		burn(L, 20);
		CHECK(is_idle(L));
	}
	lua_close(L);
}

int main(void)
{
	lua_State *L = new_vm();

	ask_before_the_first_start(L);
	start_without_callbacks(L);
	start_with_wrong_options(L);
	start_where_signals_are_taken(L);
	profile_mode(L, LUAM_SYSPROF_LEAF, sizeof(buffer));
	profile_mode(L, LUAM_SYSPROF_LEAF, 1);
	profile_mode(L, LUAM_SYSPROF_CALLGRAPH, sizeof(buffer));
	profile_mode(L, LUAM_SYSPROF_CALLGRAPH, 1);
	call_while_running(L);
	close_vm_while_running();
	fail_head(L, false, "took less than it was given");
	fail_head(L, true, "ended the stream");
	fail_later(L, false, "took less than it was given");
	fail_later(L, true, "ended the stream");
	fail_in_on_stop(L);
	call_back_from_the_writer(L);
	use_a_backtracer(L);
	fork_while_running(L);
	end_on_another_thread();
	start_and_stop_often(L);
	stop_while_signals_are_blocked(L);
	fall_back_to_other_clocks(L);
	stop_from_lua();
	outlive_the_module();
	profile_mode(L, LUAM_SYSPROF_CALLGRAPH, 64);
	lua_close(L);
	free(sink.bytes);
	return 0;
}
