// SPDX-License-Identifier: MIT
/*
 * A profile that the environment asks for. Ordinary code; the handler of fatal
 * signals does no more than to wake a thread.
 */
#include "environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "session.h"
#include "sysprof_options.h"

#define PATH_BYTES 4096

/* Options of misc.sysprof.start() and the variables that they come from. */
static const struct {
	const char *option, *variable, *usual;
	bool is_number;
} variables[] = {
	{"mode", "LUAJIT_SYSPROF_MODE", "C", false},
	{"interval", "LUAJIT_SYSPROF_INTERVAL", NULL, true},
	{"clock", "LUAJIT_SYSPROF_CLOCK", NULL, false},
	{"overhead", "LUAJIT_SYSPROF_OVERHEAD", NULL, true},
	{"signal", "LUAJIT_SYSPROF_SIGNAL", NULL, false},
	{"rotate", "LUAJIT_SYSPROF_ROTATE", NULL, true},
	{"rotate_limit", "LUAJIT_SYSPROF_ROTATE_LIMIT", NULL, false},
	{"fork", "LUAJIT_SYSPROF_FORK", "follow", false},
};

/* ---- signals that end the process ------------------------------------------ */

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define FATAL_COUNT (sizeof(fatal_signals) / sizeof(fatal_signals[0]))

static sem_t fatal_wake;
static volatile sig_atomic_t fatal_signal;

static void note_fatal_signal(int signal)
{
	int saved_errno = errno;

	fatal_signal = signal;
	sem_post(&fatal_wake);
	errno = saved_errno;
}

/* The default action is what would have happened without us. */
static void *end_by_signal(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "sysprof-signals");
	while (sem_wait(&fatal_wake) < 0)
		;
	luaM_sysprof_finish();
	signal(fatal_signal, SIG_DFL);
	kill(getpid(), fatal_signal);
	return NULL;
}

static bool is_ours(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 &&
	       action.sa_handler == note_fatal_signal;
}

static void give_signals_back(void)
{
	for (size_t i = 0; i < FATAL_COUNT; i++)
		if (is_ours(fatal_signals[i]))
			signal(fatal_signals[i], SIG_DFL);
}

/* The program's own handlers, and those that it sets later, are left alone: a
 * program that has them ends by itself. */
static void take_signals(void)
{
	struct sigaction ours = {.sa_handler = note_fatal_signal,
	                         .sa_flags = SA_RESTART};

	for (size_t i = 0; i < FATAL_COUNT; i++) {
		struct sigaction action;

		if (sigaction(fatal_signals[i], NULL, &action) == 0 &&
		    action.sa_handler == SIG_DFL)
			sigaction(fatal_signals[i], &ours, NULL);
	}
}

static void watch_signals(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int code;

	sem_init(&fatal_wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attributes, end_by_signal, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code == 0)
		take_signals();
}

/* The thread is the parent's alone. Runs behind the child's part of a session,
 * which has started a profile of the child by then, or not. */
static void watch_signals_in_child(void)
{
	give_signals_back();
	if (session_is_running())
		watch_signals();
}

static void watch_forks_for_signals(void)
{
	pthread_atfork(NULL, NULL, watch_signals_in_child);
}

/* ---- start -------------------------------------------------------------------- */

static void report_refusal(const char *path, const struct error *error)
{
	char name[PATH_BYTES];
	FILE *file;

	snprintf(name, sizeof(name), "%s.error", path);
	file = fopen(name, "ae");
	if (!file)
		return;
	fprintf(file, "process %d: %s\n", (int)getpid(), error->text);
	fclose(file);
}

/* Several processes may run with one environment: the first one to come makes the
 * file of that name, others have their id behind it. All dumps of a rotation have
 * it anyway. */
static void choose_path(const char *wanted, char *path)
{
	const char *rotate = secure_getenv("LUAJIT_SYSPROF_ROTATE");
	int fd;

	if (rotate && rotate[0]) {
		snprintf(path, PATH_BYTES, "%s", wanted);
		return;
	}
	fd = open(wanted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno != EEXIST)
		snprintf(path, PATH_BYTES, "%s", wanted);
	else
		snprintf(path, PATH_BYTES, "%s.%d", wanted, (int)getpid());
}

/* What is no number is refused with the option's own message. */
static void push_value(lua_State *L, const char *value, bool is_number)
{
	char *end;
	double number = strtod(value, &end);

	if (is_number && end != value && *end == '\0')
		lua_pushnumber(L, number);
	else
		lua_pushstring(L, value);
}

static void push_options(lua_State *L, const char *path)
{
	lua_newtable(L);
	lua_pushstring(L, path);
	lua_setfield(L, -2, "path");
	lua_pushliteral(L, "process");
	lua_setfield(L, -2, "scope");
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = secure_getenv(variables[i].variable);

		if (!value || !value[0])
			value = variables[i].usual;
		if (!value)
			continue;
		push_value(L, value, variables[i].is_number);
		lua_setfield(L, -2, variables[i].option);
	}
}

struct start_request {
	const char *path;
	struct error error;
	int result;
};

static int start_inside(lua_State *L)
{
	struct start_request *request = lua_touserdata(L, 1);
	struct session_options options = {0};

	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	push_options(L, request->path);
	request->result = sysprof_read_options(L, lua_gettop(L), &options,
	                                       &request->error);
	if (request->result < 0)
		return 0;
	options.outlives_vm = true;
	request->result = session_start(L, &options, &request->error);
	return 0;
}

/* It knows when the process ends, or executes another program. */
static void tell_preload(void)
{
	void (*set_hooks)(void (*)(void), void (*)(void), void (*)(void));

	*(void **)&set_hooks = dlsym(RTLD_DEFAULT, "luaM_sysprof_set_hooks");
	if (set_hooks)
		set_hooks(luaM_sysprof_finish, luaM_sysprof_before_exec,
		          luaM_sysprof_after_exec);
}

static void start(lua_State *L, const char *wanted)
{
	static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
	char path[PATH_BYTES];
	struct start_request request = {.path = path, .result = -1};
	int top = lua_gettop(L);

	choose_path(wanted, path);
	if (lua_cpcall(L, start_inside, &request) != 0)
		error_set(&request.error, PROFILE_ERRMEM, ENOMEM,
		          "out of memory");
	lua_settop(L, top);
	if (request.result < 0) {
		report_refusal(wanted, &request.error);
		return;
	}
	tell_preload();
	/* Behind the session's own: children's parts run in this order. */
	if (pthread_once(&forks_watched, watch_forks_for_signals) == 0)
		watch_signals();
}

void luaM_sysprof_vm_appears(lua_State *L)
{
	const char *path = secure_getenv("LUAJIT_SYSPROF_PATH");

	if (path && path[0] && !session_is_running())
		start(L, path);
}

int luaM_sysprof_lua_init(lua_State *L)
{
	const char *init = secure_getenv("LUAJIT_SYSPROF_LUA_INIT");

	luaM_sysprof_vm_appears(L);
	if (!init || !init[0])
		return 0;
	if (init[0] == '@' ? luaL_dofile(L, init + 1) : luaL_dostring(L, init))
		return lua_error(L);
	return 0;
}

/* ---- the end of the program ------------------------------------------------------ */

void luaM_sysprof_finish(void)
{
	session_end_all();
}

void luaM_sysprof_before_exec(void)
{
	session_pause_all();
}

void luaM_sysprof_after_exec(void)
{
	session_resume_all();
}
