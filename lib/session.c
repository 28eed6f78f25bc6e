// SPDX-License-Identifier: MIT
/*
 * Session: the profiles of a process, who may start and stop them, and what they
 * report. Ordinary code on any thread.
 */
#include "session_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lmisclib.h"
#include "sample_signal.h"
#include "vm/registry_sig.h"

struct sessions sessions = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const void *registry_of(lua_State *L)
{
	return L ? lua_topointer(L, LUA_REGISTRYINDEX) : NULL;
}

/* With the lock held, as the next ones. */
static struct session *find_session(const void *registry)
{
	struct session *session = sessions.first;

	while (session && session->registry != registry)
		session = session->next;
	return session;
}

static void remove_session(struct session *session)
{
	struct session **link = &sessions.first;

	while (*link && *link != session)
		link = &(*link)->next;
	if (*link)
		*link = session->next;
}

void session_forget(struct session *session)
{
	pthread_mutex_lock(&sessions.lock);
	remove_session(session);
	pthread_mutex_unlock(&sessions.lock);
	perf_share_release(&session->perf);
}

static void set_state(struct session *session, enum session_state state)
{
	pthread_mutex_lock(&sessions.lock);
	session->state = state;
	pthread_mutex_unlock(&sessions.lock);
}

/* ---- the end of the VM ----------------------------------------------------- */

static int end_session(struct session *session, struct error *error);

/* The session with this serial number, now STOPPING, or NULL. */
static struct session *take_session(uint64_t serial)
{
	struct session *session;

	pthread_mutex_lock(&sessions.lock);
	for (session = sessions.first; session; session = session->next)
		if (session->serial == serial)
			break;
	if (session && session->state == SESSION_RUNNING)
		session->state = SESSION_STOPPING;
	else
		session = NULL;
	pthread_mutex_unlock(&sessions.lock);
	return session;
}

static void end_with_vm(lua_State *L, uint64_t serial)
{
	struct session *session = take_session(serial);

	(void)L;
	if (session)
		vm_registry_forget(session->vm.global_state);
	perf_share_forget_vm(session ? &session->perf : NULL, serial);
	if (session)
		end_session(session, NULL);
}

const struct vm_guard_kind session_guard = {.closing = end_with_vm};

/* ---- start ---------------------------------------------------------------- */

static void discard_session(struct session *session, lua_State *L)
{
	session_stop_sampling(session);
	perf_share_unwatch(&session->perf, &session->vm, L);
	session_discard_writer(session);
	vm_guard_drop(L, &session_guard);
	session_forget(session);
	session_free(session);
}

static int refuse_second(struct error *error)
{
	return error_set(error, PROFILE_ERRRUN, EINVAL,
	                 "profiler is running already");
}

/* With the lock held. */
static bool is_in_the_way(const struct session *other, const void *registry,
                          bool process)
{
	return other->registry == registry || other->options.process || process;
}

static struct session *find_in_the_way(const void *registry, bool process)
{
	struct session *session = sessions.first;

	while (session && !is_in_the_way(session, registry, process))
		session = session->next;
	return session;
}

/* A callback of the host runs on it: it would wait for itself. */
static bool is_writer_thread(void)
{
	const struct session *session = sessions.first;

	while (session &&
	       !(session->has_writer_thread &&
	         pthread_equal(session->writer_thread, pthread_self())))
		session = session->next;
	return session != NULL;
}

/* Enters the session as STARTING, or refuses. The counters start again in any
 * case. */
static int claim_start(struct session *session)
{
	bool refused;

	pthread_mutex_lock(&sessions.lock);
	refused = find_in_the_way(session->registry,
	                          session->options.process) != NULL ||
	          is_writer_thread();
	if (!refused) {
		sessions.last = (struct session_report){0};
		session->serial = ++sessions.serial;
		sessions.process_id = getpid();
		session->next = sessions.first;
		sessions.first = session;
	}
	pthread_mutex_unlock(&sessions.lock);
	return refused ? -1 : 0;
}

static struct session *new_session(lua_State *L,
                                   const struct session_options *options,
                                   struct error *error)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for a profile");
		return NULL;
	}
	session->options = *options;
	session->registry = registry_of(L);
	if (claim_start(session) == 0)
		return session;
	free(session);
	refuse_second(error);
	return NULL;
}

int session_start(lua_State *L, const struct session_options *options,
                  struct error *error)
{
	static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
	struct session *session;

	pthread_once(&forks_watched, session_watch_forks);
	session = new_session(L, options, error);
	if (!session)
		return -1;
	if (session_open_parts(session, L, error) < 0) {
		discard_session(session, L);
		return -1;
	}
	set_state(session, SESSION_RUNNING);
	if (sampled_threads_start(session->threads, error) < 0) {
		set_state(session, SESSION_STARTING);
		discard_session(session, L);
		return -1;
	}
	return 0;
}

/* ---- stop ----------------------------------------------------------------- */

static void read_report(const struct session *session,
                        struct session_report *report)
{
	report->interval_ns = session->options.interval_ns;
	report->clock =
		sample_clock_name(sampled_threads_clock(session->threads));
	sampled_threads_read_counters(session->threads, &report->counters);
	sampled_threads_read_facts(session->threads, &report->threads);
	report->writer = session->writer_facts;
	if (session->writer)
		writer_read_facts(session->writer, &report->writer);
	report->counters.lost[LOST_UNWRITTEN] = report->writer.unwritten_count;
}

/* Does the host's part of the end, once. The profile has ended by then. */
static int call_on_stop(const struct session_options *options, int result,
                        struct error *error)
{
	if (!options->on_stop)
		return result;
	errno = 0;
	if (options->on_stop(options->context, options->buffer) == 0 ||
	    result < 0)
		return result;
	return error_set(error, PROFILE_ERRIO, errno != 0 ? errno : EIO,
	                 "the on_stop callback failed: %s",
	                 strerror(errno != 0 ? errno : EIO));
}

/* Ends a session whose state was made STOPPING by the caller. */
static int end_session(struct session *session, struct error *error)
{
	struct session_options options = session->options;
	struct session_report report = {0};
	int result = 0;

	session_stop_sampling(session);
	result = session_close_writer(session, error);
	result = perf_share_check(&session->perf, result, error);
	read_report(session, &report);

	pthread_mutex_lock(&sessions.lock);
	sessions.last = report;
	pthread_mutex_unlock(&sessions.lock);
	session_forget(session);
	session_free(session);
	return call_on_stop(&options, result, error);
}

/* The session that L's VM is in: its own, or that of the process. With the lock
 * held. */
static struct session *session_of(lua_State *L)
{
	struct session *session = find_session(registry_of(L));

	if (session || !sessions.first)
		return session;
	return sessions.first->options.process ? sessions.first : NULL;
}

/* Makes the state STOPPING and hands out the session, or refuses. */
static struct session *claim_end(lua_State *L, struct error *error)
{
	struct session *session = session_of(L);

	if (!sessions.first || (session && session->state != SESSION_RUNNING)) {
		error_set(error, PROFILE_ERRRUN, EINVAL,
		          "profiler is not running");
		return NULL;
	}
	if (is_writer_thread()) {
		error_set(error, PROFILE_ERRUSE, EDEADLK,
		          "the writer callback cannot stop the profile; set "
		          "*data to NULL to end the stream");
		return NULL;
	}
	if (!session) {
		error_set(error, PROFILE_ERRUSE, EINVAL,
		          "the profile that is running was started in another "
		          "Lua VM; stop it there");
		return NULL;
	}
	session->state = SESSION_STOPPING;
	return session;
}

int session_stop(lua_State *L, struct error *error)
{
	struct session *session;

	pthread_mutex_lock(&sessions.lock);
	session = claim_end(L, error);
	pthread_mutex_unlock(&sessions.lock);
	if (!session)
		return -1;
	vm_guard_drop(L, &session_guard);
	perf_share_unwatch(&session->perf, &session->vm, L);
	return end_session(session, error);
}

/* ---- questions ------------------------------------------------------------ */

bool session_is_running(void)
{
	bool running;

	pthread_mutex_lock(&sessions.lock);
	running = sessions.first != NULL;
	pthread_mutex_unlock(&sessions.lock);
	return running;
}

bool session_is_in_the_way(lua_State *L)
{
	bool found;

	pthread_mutex_lock(&sessions.lock);
	found = find_in_the_way(registry_of(L), false) != NULL ||
	        (sessions.first && (!L || is_writer_thread()));
	pthread_mutex_unlock(&sessions.lock);
	return found;
}

/* Threads and writer of a session that is being started are not complete. */
static bool has_report(const struct session *session)
{
	return session->state != SESSION_STARTING;
}

void session_read_report(lua_State *L, struct session_report *report)
{
	const struct session *session;

	pthread_mutex_lock(&sessions.lock);
	session = session_of(L);
	if (!session)
		session = sessions.first;
	*report = sessions.last;
	report->running = session != NULL;
	if (session && has_report(session))
		read_report(session, report);
	pthread_mutex_unlock(&sessions.lock);
}

int session_check_available(lua_State *L, struct error *error)
{
	struct sample_clock clock;

	if (vm_guard_check(L, error) < 0)
		return -1;
	if (session_is_in_the_way(L))
		return 0;
	pthread_mutex_lock(&sessions.lock);
	if (!sessions.first)
		sample_signal_choose(false);
	pthread_mutex_unlock(&sessions.lock);
	if (sample_signal_check(false, error) < 0 ||
	    sample_clock_open(&clock, SAMPLE_CLOCK_PERF,
	                      (pid_t)syscall(SYS_gettid),
	                      SAMPLE_INTERVAL_NS_MAX, error) < 0)
		return -1;
	sample_clock_close(&clock);
	return 0;
}
