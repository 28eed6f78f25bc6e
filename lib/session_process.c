// SPDX-License-Identifier: MIT
/*
 * Session: what happens to all profiles of a process at once, as it forks, ends or
 * is about to become another program. On any thread.
 */
#include "session_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample_signal.h"
#include "host/unwind_table.h"

/* ---- fork and exit -------------------------------------------------------- */

static void lock_before_fork(void)
{
	pthread_mutex_lock(&sessions.lock);
	perf_share_before_fork();
}

static void unlock_in_parent(void)
{
	perf_share_in_parent();
	pthread_mutex_unlock(&sessions.lock);
}

/* Where it fails the child is not profiled. */
static void follow_in_child(const struct session *parent)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return;
	session->serial = ++sessions.serial;
	sessions.process_id = getpid();
	session->state = SESSION_RUNNING;
	sessions.first = session;
	if (session_follow(session, parent) == 0)
		return;
	session_stop_sampling(session);
	session_discard_writer(session);
	session_forget(session);
	session_free(session);
}

/* The writer thread is the parent's alone, and so are the clock and the dump:
 * the child lets go of them without writing a byte. It goes on to tell perf of
 * its traces, by files of its own. */
static void forget_in_child(void)
{
	struct session *session, *follow = NULL;

	sampler_detach_all();
	for (session = sessions.first; session; session = session->next) {
		if (session->threads)
			sampled_threads_abandon(session->threads);
		if (session->writer)
			writer_abandon(session->writer);
		if (session->options.follow_forks &&
		    session->state == SESSION_RUNNING)
			follow = session;
		perf_share_inherit(&session->perf, session->serial);
	}
	sample_signal_after_fork();
	unwind_tables_after_fork();
	perf_share_in_child();
	sessions.first = NULL;
	sessions.last = (struct session_report){0};
	pthread_mutex_init(&sessions.lock, NULL);
	if (follow)
		follow_in_child(follow);
}

void session_watch_forks(void)
{
	pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

static void end_one_at_exit(struct session *session)
{
	session_stop_sampling(session);
	if (!session->options.writer)
		session_close_writer(session, NULL);
}

/* A child of vfork(2) shares all memory, and none of it is its own. */
static bool is_our_process(void)
{
	return sessions.process_id == getpid();
}

/* One that is RUNNING, and STOPPING from now on; NULL: there is none. */
static struct session *take_any_session(void)
{
	struct session *session;

	if (!is_our_process() || pthread_mutex_trylock(&sessions.lock) != 0)
		return NULL;
	session = sessions.first;
	while (session && session->state != SESSION_RUNNING)
		session = session->next;
	if (session)
		session->state = SESSION_STOPPING;
	pthread_mutex_unlock(&sessions.lock);
	return session;
}

/*
 * A process that ends without stop keeps what it has recorded. Other threads
 * may still run Lua, so nothing is freed; and the host's buffer and callback
 * may have gone with main(), so they are not used.
 */
__attribute__((destructor)) void session_end_all(void)
{
	struct session *session;

	while ((session = take_any_session()) != NULL)
		end_one_at_exit(session);
}

void session_pause_all(void)
{
	struct session *session;

	if (!is_our_process())
		return;
	pthread_mutex_lock(&sessions.lock);
	for (session = sessions.first; session; session = session->next) {
		if (session->state != SESSION_RUNNING)
			continue;
		sampled_threads_pause(session->threads, true);
		if (session->writer && !session->options.writer)
			writer_flush(session->writer);
	}
	if (sessions.first)
		sample_signal_discard_pending();
	pthread_mutex_unlock(&sessions.lock);
}

void session_resume_all(void)
{
	struct session *session;

	if (!is_our_process())
		return;
	pthread_mutex_lock(&sessions.lock);
	for (session = sessions.first; session; session = session->next)
		if (session->state == SESSION_RUNNING)
			sampled_threads_pause(session->threads, false);
	pthread_mutex_unlock(&sessions.lock);
}
