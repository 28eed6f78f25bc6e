// SPDX-License-Identifier: MIT
/*
 * Catching the faults of loads: puts our handler before the host's own and
 * takes it away again. Not for the signal handler.
 */
#include "load_faults.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lmisclib.h"
#include "load_sig.h"

static pthread_mutex_t catch_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int catch_count;
/* Puts our handler before the one of signal, keeping its mask and flags, so
 * that it finds the environment that it asked for. */
static int catch_signal(int signal, struct sigaction *previous)
{
	struct sigaction action;

	if (sigaction(signal, NULL, previous))
		return -1;
	action = *previous;
	action.sa_sigaction = load_handle_fault;
	action.sa_flags |= SA_SIGINFO;
	/* A fault inside the previous handler must still reach ours. */
	action.sa_flags &= ~(int)SA_RESETHAND;
	return sigaction(signal, &action, NULL);
}

int load_faults_catch(struct error *error)
{
	int failed = 0;

	pthread_mutex_lock(&catch_lock);
	/* After a release that could not restore, ours is still in the chain:
	 * installing it again would make it its own predecessor. */
	if (catch_count++ == 0) {
		if (!load_is_caught(SIGSEGV))
			failed = catch_signal(SIGSEGV, &load_previous_segv);
		if (!failed && !load_is_caught(SIGBUS))
			failed = catch_signal(SIGBUS, &load_previous_bus);
		if (failed)
			catch_count--;
	}
	pthread_mutex_unlock(&catch_lock);
	if (failed)
		return error_set(error, PROFILE_ERRUSE, errno,
		                 "cannot handle SIGSEGV and SIGBUS: %s",
		                 strerror(errno));
	return 0;
}

void load_faults_release(void)
{
	pthread_mutex_lock(&catch_lock);
	if (--catch_count == 0) {
		if (load_is_caught(SIGSEGV))
			sigaction(SIGSEGV, &load_previous_segv, NULL);
		if (load_is_caught(SIGBUS))
			sigaction(SIGBUS, &load_previous_bus, NULL);
	}
	pthread_mutex_unlock(&catch_lock);
}
