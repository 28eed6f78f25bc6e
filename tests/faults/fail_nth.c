// SPDX-License-Identifier: MIT
/*
 * Fails the n-th call that the profiler makes of any of libc's functions below,
 * when preloaded; or each write from some moment on, or makes them slow. Calls of
 * LuaJIT, libc and others pass. The test arms it.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static _Atomic long calls_left; /* 0: not armed */
static _Atomic bool has_failed;
static __thread bool inside;
static const char *_Atomic failed_function;

EXPORT void fail_nth_arm(long n);
void fail_nth_arm(long n)
{
	has_failed = false;
	failed_function = "";
	calls_left = n;
}

/* Which function was made to fail; "": none, there were not so many calls. */
EXPORT const char *fail_nth_disarm(void);
const char *fail_nth_disarm(void)
{
	calls_left = 0;
	return failed_function;
}

static _Atomic int write_errno;       /* of each write; 0: they do not fail */
static _Atomic unsigned int write_us; /* how long each write takes longer */

EXPORT void fail_writes(int code);
void fail_writes(int code)
{
	write_errno = code;
}

EXPORT void slow_writes(unsigned int us);
void slow_writes(unsigned int us)
{
	write_us = us;
}

static bool is_from_profiler(const void *caller)
{
	Dl_info info;
	bool found;

	if (inside)
		return false;
	inside = true;
	found = dladdr(caller, &info) &&
	        strstr(info.dli_fname, "libluajit-sysprof.so");
	inside = false;
	return found;
}

static bool fails(const char *function, const void *caller)
{
	if (calls_left <= 0 || !is_from_profiler(caller))
		return false;
	if (atomic_fetch_sub(&calls_left, 1) != 1)
		return false;
	failed_function = function;
	has_failed = true;
	errno = EMFILE;
	return true;
}

#define NEXT(name)                                                             \
	static __typeof__(name) *next;                                         \
	if (!next)                                                             \
	*(void **)&next = dlsym(RTLD_NEXT, #name)

#define FAILS(name) fails(name, __builtin_return_address(0))

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags,
                  int fd, off_t offset)
{
	NEXT(mmap);
	return FAILS("mmap")
	               ? MAP_FAILED
	               : next(address, bytes, protection, flags, fd, offset);
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	NEXT(open);
	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	return FAILS("open") ? -1 : next(path, flags, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	NEXT(fopen);
	return FAILS("fopen") ? NULL : next(path, mode);
}

EXPORT DIR *opendir(const char *path)
{
	NEXT(opendir);
	return FAILS("opendir") ? NULL : next(path);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
	NEXT(pthread_create);
	return FAILS("pthread_create")
	               ? EAGAIN
	               : next(thread, attributes, start, argument);
}

EXPORT int sigaction(int number, const struct sigaction *action,
                     struct sigaction *before)
{
	NEXT(sigaction);
	return FAILS("sigaction") ? -1 : next(number, action, before);
}

EXPORT int fcntl(int fd, int command, ...)
{
	va_list list;
	void *argument;

	NEXT(fcntl);
	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	return FAILS("fcntl") ? -1 : next(fd, command, argument);
}

EXPORT int ioctl(int fd, unsigned long request, ...);
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *argument;

	NEXT(ioctl);
	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	return FAILS("ioctl") ? -1 : next(fd, request, argument);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
	NEXT(write);
	if ((write_us || write_errno) &&
	    is_from_profiler(__builtin_return_address(0))) {
		usleep(write_us);
		errno = write_errno;
		if (write_errno)
			return -1;
	}
	return FAILS("write") ? -1 : next(fd, bytes, count);
}

EXPORT int ftruncate(int fd, off_t length)
{
	NEXT(ftruncate);
	return FAILS("ftruncate") ? -1 : next(fd, length);
}

EXPORT int fstat(int fd, struct stat *status)
{
	NEXT(fstat);
	return FAILS("fstat") ? -1 : next(fd, status);
}

/* dlsym() may need them before they are known, when they go to libc's own. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);

EXPORT void *malloc(size_t bytes)
{
	return FAILS("malloc") ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	return FAILS("calloc") ? NULL : __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
	return FAILS("realloc") ? NULL : __libc_realloc(memory, bytes);
}
