// SPDX-License-Identifier: MIT
/* Threads of our own; see own_thread.h. */
#include "own_thread.h"

#include <string.h>

#include "lmisclib.h"

void own_thread_fill_mask(sigset_t *mask)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

	sigfillset(mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(mask, faults[i]);
}

int own_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                     const char *what, struct error *error)
{
	sigset_t mask, before;
	int code;

	own_thread_fill_mask(&mask);
	pthread_sigmask(SIG_BLOCK, &mask, &before);
	code = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code == 0)
		return 0;
	return error_set(error, PROFILE_ERRMEM, code, "no thread for %s: %s",
	                 what, strerror(code));
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}
