// SPDX-License-Identifier: MIT
/* A profile that the environment, or an agent, asks for. Ordinary code. */
#include "environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "fatal_signals.h"
#include "perf_share.h"
#include "session.h"
#include "sysprof_options.h"
#include "vm/check.h"

#define PATH_BYTES 4096

/* Options of misc.sysprof.start() and the variables that they come from. */
struct variable {
	const char *option, *variable, *usual;
	enum value_kind {
		VALUE_TEXT,
		VALUE_NUMBER,
		VALUE_FLAG
	} kind;
};

static const struct variable variables[] = {
	{"mode", "LUAJIT_SYSPROF_MODE", "C", VALUE_TEXT},
	{"interval", "LUAJIT_SYSPROF_INTERVAL", NULL, VALUE_NUMBER},
	{"clock", "LUAJIT_SYSPROF_CLOCK", NULL, VALUE_TEXT},
	{"kernel", "LUAJIT_SYSPROF_KERNEL", NULL, VALUE_FLAG},
	{"overhead", "LUAJIT_SYSPROF_OVERHEAD", NULL, VALUE_NUMBER},
	{"signal", "LUAJIT_SYSPROF_SIGNAL", NULL, VALUE_TEXT},
	{"rotate", "LUAJIT_SYSPROF_ROTATE", NULL, VALUE_NUMBER},
	{"rotate_limit", "LUAJIT_SYSPROF_ROTATE_LIMIT", NULL, VALUE_TEXT},
	{"fork", "LUAJIT_SYSPROF_FORK", "follow", VALUE_TEXT},
};

/* Of an agent. In the environment they are for all profiles: lib/perf_share.c. */
static const struct variable perf_variables[] = {
	{"perf", "LUAJIT_SYSPROF_PERF", NULL, VALUE_FLAG},
	{"perf_dir", "LUAJIT_SYSPROF_PERF_DIR", NULL, VALUE_TEXT},
	{"perf_unwind", "LUAJIT_SYSPROF_PERF_UNWIND", NULL, VALUE_TEXT},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

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
 * it anyway. True: the file was made here. */
static bool choose_path(const char *wanted, char *path)
{
	const char *rotate = secure_getenv("LUAJIT_SYSPROF_ROTATE");
	int fd;

	if (rotate && rotate[0]) {
		snprintf(path, PATH_BYTES, "%s", wanted);
		return false;
	}
	fd = open(wanted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno != EEXIST)
		snprintf(path, PATH_BYTES, "%s", wanted);
	else
		snprintf(path, PATH_BYTES, "%s.%d", wanted, (int)getpid());
	return fd >= 0;
}

/* What is no number or no flag is refused with the option's own message. */
static void push_value(lua_State *L, const char *value, enum value_kind kind)
{
	char *end;
	double number = strtod(value, &end);
	bool is_number = end != value && *end == '\0';

	if (kind == VALUE_NUMBER && is_number)
		lua_pushnumber(L, number);
	else if (kind == VALUE_FLAG && is_number)
		lua_pushboolean(L, number != 0);
	else
		lua_pushstring(L, value);
}

/* Where the values of the variables come from. */
struct start_request {
	const char *path;
	const char *settings; /* of an agent; NULL: the environment */
	int dump_fd;          /* the same */
	const struct rotation_files *files; /* the same */
	struct error error;
	int result;
};

/* The value in lines "NAME=VALUE", copied; NULL: it is not there. */
static char *copy_setting(const char *settings, const char *name)
{
	size_t length = strlen(name);

	while (*settings) {
		const char *end = strchrnul(settings, '\n');

		if (strncmp(settings, name, length) == 0 &&
		    settings[length] == '=')
			return strndup(settings + length + 1,
			               (size_t)(end - settings) - length - 1);
		settings = *end ? end + 1 : end;
	}
	return NULL;
}

static char *copy_variable(const struct start_request *request,
                           const char *name)
{
	const char *value;

	if (request->settings)
		return copy_setting(request->settings, name);
	value = secure_getenv(name);
	return value ? strdup(value) : NULL;
}

/* Into the table on top. */
static void set_options(lua_State *L, const struct start_request *request,
                        const struct variable *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *value = copy_variable(request, table[i].variable);

		if (value && value[0])
			push_value(L, value, table[i].kind);
		else if (table[i].usual)
			lua_pushstring(L, table[i].usual);
		else
			lua_pushnil(L);
		free(value);
		lua_setfield(L, -2, table[i].option);
	}
}

static void push_options(lua_State *L, const struct start_request *request)
{
	lua_newtable(L);
	lua_pushstring(L, request->path);
	lua_setfield(L, -2, "path");
	lua_pushliteral(L, "process");
	lua_setfield(L, -2, "scope");
	set_options(L, request, variables, COUNT_OF(variables));
	if (request->settings)
		set_options(L, request, perf_variables,
		            COUNT_OF(perf_variables));
}

static int start_inside(lua_State *L)
{
	struct start_request *request = lua_touserdata(L, 1);
	struct session_options options = {0};

	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	push_options(L, request);
	request->result = sysprof_read_options(L, lua_gettop(L), &options,
	                                       &request->error);
	if (request->result < 0)
		return 0;
	options.outlives_vm = true;
	options.from_outside = request->settings != NULL;
	options.dump_fd = request->dump_fd;
	options.rotation.files = request->files;
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

static void start_protected(lua_State *L, struct start_request *request)
{
	int top = lua_gettop(L);

	request->result = -1;
	if (lua_cpcall(L, start_inside, request) != 0)
		error_set(&request->error, PROFILE_ERRMEM, ENOMEM,
		          "out of memory");
	lua_settop(L, top);
}

static void start(lua_State *L, const char *wanted)
{
	char path[PATH_BYTES];
	struct start_request request = {.path = path};
	bool is_made = choose_path(wanted, path);

	start_protected(L, &request);
	if (request.result < 0) {
		if (is_made)
			unlink(path);
		report_refusal(wanted, &request.error);
		return;
	}
	tell_preload();
	fatal_signals_watch();
}

void luaM_sysprof_vm_appears(lua_State *L)
{
	const char *path = secure_getenv("LUAJIT_SYSPROF_PATH");

	if (layout_check_has_made(L))
		return;
	if (path && path[0] && !session_is_running())
		start(L, path);
	else
		perf_share_meet(L);
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

/* ---- from outside ---------------------------------------------------------------- */

/* The VM of the agent's thread: in it LuaJIT's layout is checked, since those of
 * the program must not be called into. It stays idle. */
static lua_State *own_vm;
static pid_t own_vm_process; /* a child of fork(2) has a copy, and no agent */

/* Not a reference of the library's, since a program that holds LuaJIT, and opens
 * its libraries one by one, may lack it. */
static int open_libraries(lua_State *L)
{
	void (*open)(lua_State *);

	*(void **)&open = dlsym(RTLD_DEFAULT, "luaL_openlibs");
	if (!open)
		return luaL_error(L, "no luaL_openlibs()");
	open(L);
	return 0;
}

static void close_own_vm(void)
{
	if (own_vm)
		lua_close(own_vm);
	own_vm = NULL;
}

static int start_from_outside(struct start_request *request)
{
	own_vm = luaL_newstate();
	own_vm_process = getpid();
	if (!own_vm || lua_cpcall(own_vm, open_libraries, NULL) != 0)
		return error_set(&request->error, PROFILE_ERRMEM, ENOMEM,
		                 "no VM to check LuaJIT with: %s",
		                 own_vm ? lua_tostring(own_vm, -1)
		                        : "out of memory");
	start_protected(own_vm, request);
	return request->result;
}

int luaM_sysprof_attach(const char *settings, int dump_fd,
                        const struct rotation_files *files, char *text,
                        size_t bytes)
{
	struct session_report report;
	char *path = copy_setting(settings, "LUAJIT_SYSPROF_PATH");
	struct start_request request = {
		.path = path ? path : "sysprof.bin",
		.settings = settings,
		.dump_fd = dump_fd,
		.files = files,
	};
	int result;

	if ((own_vm && own_vm_process == getpid()) || session_is_running())
		result = error_set(&request.error, PROFILE_ERRRUN, EINVAL,
		                   "a profile runs in it already");
	else if ((result = start_from_outside(&request)) < 0)
		close_own_vm();
	free(path);
	if (result < 0) {
		snprintf(text, bytes, "%s", request.error.text);
		return -1;
	}
	fatal_signals_watch();
	session_read_report(own_vm, &report);
	snprintf(text, bytes, "%u %s, %s",
	         (unsigned int)report.threads.thread_count,
	         report.threads.thread_count == 1 ? "thread" : "threads",
	         report.clock);
	return 0;
}

int luaM_sysprof_detach(char *text, size_t bytes)
{
	struct error error = {.text = "no profile runs"};
	struct session_report report;
	int result = own_vm ? session_stop(own_vm, &error) : -1;

	fatal_signals_give_back();
	close_own_vm();
	session_read_report(NULL, &report);
	if (result < 0)
		snprintf(text, bytes, "%s", error.text);
	else
		snprintf(text, bytes, "%" PRIu64 " samples",
		         report.counters.samples);
	return result;
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
