// SPDX-License-Identifier: MIT
/* Fatal signals; see fatal_signals.h. Ordinary code, but for the handler. */
#include "fatal_signals.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "session.h"

static const int fatal_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define FATAL_COUNT (sizeof(fatal_signals) / sizeof(fatal_signals[0]))

static sem_t fatal_wake;
static volatile sig_atomic_t fatal_signal; /* 0: none has come */
static pthread_t watcher;
static bool is_watching;

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
	if (!fatal_signal)
		return NULL;
	session_end_all();
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

static void set_default_actions(void)
{
	for (size_t i = 0; i < FATAL_COUNT; i++)
		if (is_ours(fatal_signals[i]))
			signal(fatal_signals[i], SIG_DFL);
}

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

static void watch(void)
{
	sigset_t all, before;

	sem_init(&fatal_wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	is_watching = pthread_create(&watcher, NULL, end_by_signal, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (is_watching)
		take_signals();
}

/* The thread is the parent's alone. Runs behind the child's part of a session,
 * which has started a profile of the child by then, or not. */
static void watch_in_child(void)
{
	set_default_actions();
	is_watching = false;
	if (session_is_running())
		watch();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, watch_in_child);
}

void fatal_signals_watch(void)
{
	static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;

	/* Behind the session's own: children's parts run in this order. */
	if (pthread_once(&forks_watched, watch_forks) == 0 && !is_watching)
		watch();
}

void fatal_signals_give_back(void)
{
	if (!is_watching)
		return;
	set_default_actions();
	is_watching = false;
	sem_post(&fatal_wake);
	pthread_join(watcher, NULL);
}
