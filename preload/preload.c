// SPDX-License-Identifier: MIT
/*
 * Preload: put into a program by LD_PRELOAD, it tells the profiler of the VMs
 * that the program makes, and of its end. It goes into every process below a
 * command, most of which know nothing of Lua: so it is linked to libc alone, and
 * loads the profiler only when there is a VM.
 *
 * It replaces luaL_openlibs() and luaopen_jit(), the exec functions and _exit(),
 * each of which calls the one that it stands before.
 */
#include <dlfcn.h>
#include <errno.h>
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
static void (*vm_appears_to)(struct lua_State *L);

/* NULL until a profile runs. */
static struct hooks {
	void (*finish)(void);
	void (*before_exec)(void);
	void (*after_exec)(void);
} hooks;

/* The profiler calls it when it has started, also when LUA_INIT has loaded it. */
EXPORT void luaM_sysprof_set_hooks(void (*finish)(void),
                                   void (*before_exec)(void),
                                   void (*after_exec)(void));
void luaM_sysprof_set_hooks(void (*finish)(void), void (*before_exec)(void),
                            void (*after_exec)(void))
{
	hooks = (struct hooks){finish, before_exec, after_exec};
}

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

/* What went wrong is told where the profiler tells it, too. */
static void report(const char *path, const char *reason)
{
	char name[PATH_MAX];
	FILE *file;

	snprintf(name, sizeof(name), "%.4000s.error", path);
	file = fopen(name, "ae");
	if (!file)
		return;
	fprintf(file, "process %d: %s\n", (int)getpid(), reason);
	fclose(file);
}

/* The one that is named, or the one that the system finds. */
static void *open_library(const char *dump)
{
	const char *path = secure_getenv("LUAJIT_SYSPROF_LIBRARY");
	void *library = dlopen(path ? path : LIBRARY, RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		report(dump, dlerror());
	return library;
}

static void load_profiler(const char *dump, const void *function)
{
	static bool tried;
	void *library = NULL;

	pthread_mutex_lock(&load_lock);
	if (!tried && make_global(function) == 0)
		library = open_library(dump);
	else if (!tried)
		report(dump, "the program has several copies of LuaJIT, and "
		             "not the first one has made this VM");
	tried = true;
	if (library)
		vm_appears_to = dlsym(library, "luaM_sysprof_vm_appears");
	pthread_mutex_unlock(&load_lock);
}

static void vm_appears(struct lua_State *L, const void *function)
{
	const char *dump = secure_getenv("LUAJIT_SYSPROF_PATH");
	int saved_errno = errno;

	if (dump) {
		load_profiler(dump, function);
		if (vm_appears_to)
			vm_appears_to(L);
	}
	errno = saved_errno;
}

/* ---- VMs ------------------------------------------------------------------------- */

/* A VM without its libraries cannot be checked yet. */
EXPORT void luaL_openlibs(struct lua_State *L);
void luaL_openlibs(struct lua_State *L)
{
	void (*next)(struct lua_State *);

	*(void **)&next = find_next("luaL_openlibs", (void *)luaL_openlibs);
	if (!next)
		return;
	next(L);
	vm_appears(L, (void *)next);
}

/* For programs that open the libraries one by one. */
EXPORT int luaopen_jit(struct lua_State *L);
int luaopen_jit(struct lua_State *L)
{
	int (*next)(struct lua_State *);
	int result;

	*(void **)&next = find_next("luaopen_jit", (void *)luaopen_jit);
	if (!next)
		return 0;
	result = next(L);
	vm_appears(L, (void *)next);
	return result;
}

/* ---- the end ------------------------------------------------------------------------ */

EXPORT void _exit(int status);
void _exit(int status)
{
	if (hooks.finish)
		hooks.finish();
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

	if (hooks.before_exec)
		hooks.before_exec();
	result = (int)syscall(SYS_execve, path, arguments, environment);
	if (hooks.after_exec)
		hooks.after_exec();
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
	if (hooks.before_exec)
		hooks.before_exec();
	result = next(file, arguments, environment);
	if (hooks.after_exec)
		hooks.after_exec();
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
