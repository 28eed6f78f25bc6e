// SPDX-License-Identifier: MIT
/*
 * Preload: put into a program by LD_PRELOAD, it tells the profiler of the VMs
 * that the program makes, and of its end. It goes into every process below a
 * command, most of which know nothing of Lua: so it is linked to libc alone, and
 * loads the profiler only when there is a VM.
 *
 * It replaces luaL_newstate() and lua_newstate(), the exec functions and _exit(),
 * each of which calls the one that it stands before.
 */
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT  __attribute__((visibility("default")))
#define LIBRARY "libluajit-sysprof.so.0"

struct lua_State;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL until the profiler is loaded. */
static struct profiler {
	void (*vm_appears)(struct lua_State *L);
	void (*finish)(void);
	void (*before_exec)(void);
	void (*after_exec)(void);
} profiler;

/* ---- the functions that are stood before ------------------------------------- */

struct search {
	const char *name;
	const void *own;
	void *found;
};

/* LuaJIT may be in the scope of a plug-in only, where RTLD_NEXT does not look. */
static int look_into_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search *search = data;
	void *object, *found;

	(void)bytes;
	if (!strstr(info->dlpi_name, "luajit"))
		return 0;
	object = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!object)
		return 0;
	found = dlsym(object, search->name);
	dlclose(object);
	if (!found || found == search->own)
		return 0;
	search->found = found;
	return 1;
}

static void *find_next(const char *name, const void *own)
{
	struct search search = {.name = name, .own = own};
	void *next = dlsym(RTLD_NEXT, name);

	if (next)
		return next;
	dl_iterate_phdr(look_into_object, &search);
	return search.found;
}

/* ---- the profiler --------------------------------------------------------------- */

/* The profiler takes its lua_* from the global scope: those of this VM. */
static int make_global(const void *function)
{
	Dl_info info, seen;
	void *symbol;

	if (!dladdr(function, &info))
		return -1;
	if (dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) ==
	    NULL)
		return -1;
	symbol = dlsym(RTLD_DEFAULT, "lua_cpcall");
	return symbol && dladdr(symbol, &seen) &&
	                       seen.dli_fbase == info.dli_fbase
	               ? 0
	               : -1;
}

static void *open_library(void)
{
	char path[PATH_MAX];
	Dl_info info;

	if (dladdr((void *)open_library, &info) &&
	    strlen(info.dli_fname) < sizeof(path) - sizeof(LIBRARY)) {
		strcpy(path, info.dli_fname);
		dirname(path);
		strcat(path, "/" LIBRARY);
		if (access(path, R_OK) == 0)
			return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	}
	return dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

static void load_profiler(const void *newstate)
{
	void *library;

	pthread_mutex_lock(&load_lock);
	if (!profiler.vm_appears && make_global(newstate) == 0) {
		library = open_library();
		if (library) {
			profiler.finish = dlsym(library, "luaM_sysprof_finish");
			profiler.before_exec =
				dlsym(library, "luaM_sysprof_before_exec");
			profiler.after_exec =
				dlsym(library, "luaM_sysprof_after_exec");
			profiler.vm_appears =
				dlsym(library, "luaM_sysprof_vm_appears");
		}
	}
	pthread_mutex_unlock(&load_lock);
}

static struct lua_State *vm_appears(struct lua_State *L, const void *newstate)
{
	int saved_errno = errno;

	if (L && secure_getenv("LUAJIT_SYSPROF_PATH")) {
		load_profiler(newstate);
		if (profiler.vm_appears)
			profiler.vm_appears(L);
	}
	errno = saved_errno;
	return L;
}

/* ---- VMs ------------------------------------------------------------------------- */

EXPORT struct lua_State *luaL_newstate(void);
struct lua_State *luaL_newstate(void)
{
	struct lua_State *(*next)(void);

	*(void **)&next = find_next("luaL_newstate", luaL_newstate);
	return next ? vm_appears(next(), (void *)next) : NULL;
}

EXPORT struct lua_State *lua_newstate(void *allocator, void *context);
struct lua_State *lua_newstate(void *allocator, void *context)
{
	struct lua_State *(*next)(void *, void *);

	*(void **)&next = find_next("lua_newstate", lua_newstate);
	return next ? vm_appears(next(allocator, context), (void *)next) : NULL;
}

/* ---- the end ------------------------------------------------------------------------ */

EXPORT void _exit(int status);
void _exit(int status)
{
	if (profiler.finish)
		profiler.finish();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status);
void _Exit(int status)
{
	_exit(status);
}

/* ---- other programs -------------------------------------------------------------------- */

EXPORT int execve(const char *path, char *const arguments[],
                  char *const environment[]);
int execve(const char *path, char *const arguments[], char *const environment[])
{
	int result;

	if (profiler.before_exec)
		profiler.before_exec();
	result = (int)syscall(SYS_execve, path, arguments, environment);
	if (profiler.after_exec)
		profiler.after_exec();
	return result;
}

EXPORT int execv(const char *path, char *const arguments[]);
int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

/* libc's own search of the PATH calls its own execve(). */
EXPORT int execvpe(const char *file, char *const arguments[],
                   char *const environment[]);
int execvpe(const char *file, char *const arguments[],
            char *const environment[])
{
	int (*next)(const char *, char *const[], char *const[]);
	int result;

	*(void **)&next = dlsym(RTLD_NEXT, "execvpe");
	if (profiler.before_exec)
		profiler.before_exec();
	result = next(file, arguments, environment);
	if (profiler.after_exec)
		profiler.after_exec();
	return result;
}

EXPORT int execvp(const char *file, char *const arguments[]);
int execvp(const char *file, char *const arguments[])
{
	return execvpe(file, arguments, environ);
}

/* Of a call that has them written out. */
#define ARGUMENTS_MAX 4096

/* Up to the NULL at their end. False, with errno, if there are too many. */
static bool collect(char **arguments, const char *first, va_list *list)
{
	size_t count = 0;

	for (char *next = (char *)first; count < ARGUMENTS_MAX;
	     next = va_arg(*list, char *)) {
		arguments[count++] = next;
		if (!next)
			return true;
	}
	errno = E2BIG;
	return false;
}

EXPORT int execl(const char *path, const char *first, ...);
int execl(const char *path, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX];
	va_list list;
	bool whole;

	va_start(list, first);
	whole = collect(arguments, first, &list);
	va_end(list);
	return whole ? execve(path, arguments, environ) : -1;
}

EXPORT int execlp(const char *file, const char *first, ...);
int execlp(const char *file, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX];
	va_list list;
	bool whole;

	va_start(list, first);
	whole = collect(arguments, first, &list);
	va_end(list);
	return whole ? execvpe(file, arguments, environ) : -1;
}

EXPORT int execle(const char *path, const char *first, ...);
int execle(const char *path, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX];
	char *const *environment = NULL;
	va_list list;
	bool whole;

	va_start(list, first);
	whole = collect(arguments, first, &list);
	if (whole)
		environment = va_arg(list, char *const *);
	va_end(list);
	return whole ? execve(path, arguments, environment) : -1;
}
