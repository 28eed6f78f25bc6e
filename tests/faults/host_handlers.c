// SPDX-License-Identifier: MIT
/*
 * Handlers that a host or one of its libraries may put over the profiler's: they count
 * their calls, and one of them calls what was there before. For signals.lua.
 */
#include <signal.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

static struct sigaction before;
static volatile sig_atomic_t call_count;

static void count_call(int signal)
{
	(void)signal;
	call_count = call_count + 1;
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
	call_count = call_count + 1;
	before.sa_sigaction(signal, info, context);
}

EXPORT int host_take(int signal, int passes_on);
int host_take(int signal, int passes_on)
{
	struct sigaction action = {.sa_flags = SA_RESTART};

	if (passes_on) {
		action.sa_sigaction = pass_on;
		action.sa_flags |= SA_SIGINFO;
	} else {
		action.sa_handler = count_call;
	}
	return sigaction(signal, &action, &before);
}

/* With SIG_IGN or SIG_DFL. */
EXPORT int host_set(int signal, void (*handler)(int));
int host_set(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	return sigaction(signal, &action, &before);
}

EXPORT int host_give_back(int signal);
int host_give_back(int signal)
{
	return sigaction(signal, &before, NULL);
}

/* Is the host's handler in place? */
EXPORT int host_has(int signal);
int host_has(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 &&
	       (action.sa_handler == count_call ||
	        action.sa_sigaction == pass_on);
}

/* Is it ignored, or left to its default? */
EXPORT int host_is_free(int signal);
int host_is_free(int signal)
{
	struct sigaction action;

	return sigaction(signal, NULL, &action) == 0 &&
	       (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

EXPORT int host_calls(void);
int host_calls(void)
{
	return call_count;
}
