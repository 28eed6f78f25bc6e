// SPDX-License-Identifier: MIT
/*
 * Session: the profiles of a process and the order in which their parts come and
 * go. Ordinary code on any thread; the lock is held for a few loads and stores
 * only, so fork(2) and the callbacks of the host never wait for I/O.
 */
#include "session.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_names.h"
#include "sample_signal.h"
#include "traces.h"
#include "vm_guard.h"
#include "host/unwind_table.h"
#include "vm/registry_sig.h"
#include "vm/vm.h"
#include "writer.h"
#include "../perfmap/arena_sig.h"

#define PERF_VARIABLE    "LUAJIT_SYSPROF_PERF"
#define PERF_RANGE_BYTES 16 /* of a library function, of a marker */

enum session_state {
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPING,
};

/* What the handler and the writer use stays in place from start to stop. */
struct session {
	struct session *next;
	enum session_state state; /* guarded by the lock, as next is */
	/* What names the VM: its registry. Nothing needs to be known of the
	 * VM's layout to ask for it. */
	const void *registry;
	struct session_options options;
	uint64_t serial; /* tells it from earlier ones */
	struct vm vm;
	struct fast_names fast_names;
	uint64_t fast_address;   /* as in struct sampler_options */
	uint64_t marker_address; /* as in struct sampler_options */
	struct sampled_threads *threads;
	/* Guarded by the lock, since others look at it until it goes. NULL in
	 * mode D. The thread is told of for longer: a callback may run on it
	 * while it ends. */
	struct writer *writer;
	pthread_t writer_thread;
	bool has_writer_thread;
	struct traces *traces; /* NULL: perf is off */
	/* Of the dump: options.path is the caller's, and may be relative to a
	 * directory that the process leaves. */
	char path[PATH_MAX];
	bool is_child;   /* its path ends in the process id */
	bool has_signal; /* has taken the sample signal */
	bool owns_perf;  /* its is the session that perf is told about */
};

/* The one static state of the library outside the handler: there is one
 * /tmp/perf-<pid>.map in a process. */
static struct {
	pthread_mutex_t lock; /* guards all but the names for perf */
	struct session *sessions;
	uint64_t serial;  /* of the last session */
	pid_t process_id; /* that started the last one */
	struct session_report last;

	/* Names for perf outlive a session, since perf reads them when the
	 * report runs. They belong to the session that owns perf. */
	bool perf_owned;
	bool arena_open;
	struct address_arena arena;
	struct perf_names *names; /* NULL: perf was never on */
	struct traces *orphan;    /* in a child: of the parent's session */
	uint64_t orphan_serial;
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const void *registry_of(lua_State *L)
{
	return L ? lua_topointer(L, LUA_REGISTRYINDEX) : NULL;
}

/* With the lock held, as the next ones. */
static struct session *find_session(const void *registry)
{
	struct session *session = profile.sessions;

	while (session && session->registry != registry)
		session = session->next;
	return session;
}

static void remove_session(struct session *session)
{
	struct session **link = &profile.sessions;

	while (*link && *link != session)
		link = &(*link)->next;
	if (*link)
		*link = session->next;
}

static void forget_session(struct session *session)
{
	pthread_mutex_lock(&profile.lock);
	remove_session(session);
	if (session->owns_perf)
		profile.perf_owned = false;
	pthread_mutex_unlock(&profile.lock);
}

static void set_state(struct session *session, enum session_state state)
{
	pthread_mutex_lock(&profile.lock);
	session->state = state;
	pthread_mutex_unlock(&profile.lock);
}

/* ---- the signal ----------------------------------------------------------- */

/* All profiles of the process share the signal. */
static int choose_signal(const struct session *session, struct error *error)
{
	int wanted =
		session->options.signal ? session->options.signal : SIGPROF;
	bool free;

	pthread_mutex_lock(&profile.lock);
	free = profile.sessions == session && !session->next;
	if (free)
		sample_clock_set_signal(wanted);
	pthread_mutex_unlock(&profile.lock);
	if (free || sample_clock_signal() == wanted)
		return 0;
	return error_set(
		error, PROFILE_ERRUSE, EBUSY,
		"SIG%s is the signal of the profiles that are running; "
		"all have the same",
		sample_signal_name(sample_clock_signal()));
}

static int take_signal(struct session *session, struct error *error)
{
	if (sample_signal_take(error) < 0)
		return -1;
	session->has_signal = true;
	return 0;
}

static void release_signal(struct session *session)
{
	if (session->has_signal)
		sample_signal_release();
	session->has_signal = false;
}

/* ---- the end of the VM ----------------------------------------------------- */

static int end_session(struct session *session, struct error *error);
static void drop_traces(struct session *session);
static void drop_orphan(void);

/* The session with this serial number, now STOPPING, or NULL. */
static struct session *take_session(uint64_t serial)
{
	struct session *session;

	pthread_mutex_lock(&profile.lock);
	for (session = profile.sessions; session; session = session->next)
		if (session->serial == serial)
			break;
	if (session && session->state == SESSION_RUNNING)
		session->state = SESSION_STOPPING;
	else
		session = NULL;
	pthread_mutex_unlock(&profile.lock);
	return session;
}

static void end_with_vm(lua_State *L, uint64_t serial)
{
	struct session *session = take_session(serial);

	(void)L;
	if (session)
		vm_registry_forget(session->vm.global_state);
	if (profile.orphan && profile.orphan_serial == serial)
		drop_orphan();
	if (!session)
		return;
	drop_traces(session);
	end_session(session, NULL);
}

static const struct vm_guard_kind session_guard = {.closing = end_with_vm};

static int open_vm(struct session *session, lua_State *L, struct error *error)
{
	return vm_guard_open(&session->vm, L, &session->fast_names,
	                     session->options.outlives_vm ? NULL
	                                                  : &session_guard,
	                     session->serial, error);
}

/* ---- names for perf ------------------------------------------------------- */

static enum perf_names_kind perf_of_environment(void)
{
	const char *value = secure_getenv(PERF_VARIABLE);

	if (!value)
		return PERF_NAMES_OFF;
	return strcmp(value, "1") == 0 ? PERF_NAMES_MAP
	                               : perf_names_find_kind(value);
}

static int decide_perf(struct session_options *options, struct error *error)
{
	if (options->mode != LUAM_SYSPROF_DEFAULT) {
		if (!options->perf)
			options->perf = perf_of_environment();
		return 0;
	}
	if (!options->perf)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EINVAL,
	                 "perf needs mode \"L\" or \"C\": mode \"D\" takes no "
	                 "stacks");
}

static int open_perf_names(const struct session_options *options,
                           struct error *error)
{
	int code;

	if (!profile.arena_open) {
		code = address_arena_open(&profile.arena, ADDRESS_ARENA_BYTES);
		if (code < 0)
			return error_set(error, PROFILE_ERRMEM, -code,
			                 "no addresses for perf (%u MiB of "
			                 "executable memory): %s",
			                 ADDRESS_ARENA_BYTES >> 20,
			                 strerror(-code));
		profile.arena_open = true;
	}
	profile.names =
		perf_names_open(options->perf, options->perf_dir, error);
	return profile.names ? 0 : -1;
}

static int own_perf(struct session *session, struct error *error)
{
	bool owned;

	pthread_mutex_lock(&profile.lock);
	owned = profile.perf_owned;
	profile.perf_owned = true;
	session->owns_perf = !owned;
	pthread_mutex_unlock(&profile.lock);
	if (!owned)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "perf is told of another profile in this process; one "
	                 "at a time can have perf, or one with scope "
	                 "\"process\"");
}

static int reserve_perf_ranges(struct session *session, struct error *error)
{
	if (!session->options.perf)
		return 0;
	if (own_perf(session, error) < 0 ||
	    open_perf_names(&session->options, error) < 0)
		return -1;
	session->fast_address = address_arena_reserve(
		&profile.arena, FAST_FUNCTIONS_MAX * PERF_RANGE_BYTES);
	session->marker_address = address_arena_reserve(
		&profile.arena, MARKER_COUNT * PERF_RANGE_BYTES);
	if (session->fast_address != 0 && session->marker_address != 0)
		return 0;
	return error_set(error, PROFILE_ERRMEM, ENOMEM,
	                 "the addresses for perf are used up; start the "
	                 "program again");
}

static int watch_inside(lua_State *L)
{
	traces_watch(lua_touserdata(L, 1), L);
	return 0;
}

static int unwatch_inside(lua_State *L)
{
	traces_unwatch(lua_touserdata(L, 1), L);
	return 0;
}

/* Errors are those of a VM whose memory ends: then names are missing. */
static void call_protected(lua_State *L, lua_CFunction function,
                           struct traces *traces)
{
	if (lua_cpcall(L, function, traces) != 0)
		lua_pop(L, 1);
}

static void drop_orphan(void)
{
	if (profile.orphan)
		traces_close(profile.orphan);
	profile.orphan = NULL;
}

static int watch_traces(struct session *session, lua_State *L,
                        struct error *error)
{
	if (!session->options.perf)
		return 0;
	session->traces = traces_open(&session->vm, profile.names, error);
	if (!session->traces)
		return -1;
	drop_orphan();
	call_protected(L, watch_inside, session->traces);
	return 0;
}

/* While the VM is being closed. */
static void drop_traces(struct session *session)
{
	if (session->traces)
		traces_close(session->traces);
	session->traces = NULL;
}

static void unwatch_traces(struct session *session, lua_State *L)
{
	if (!session->traces)
		return;
	if (vm_owns(&session->vm, L)) {
		call_protected(L, unwatch_inside, session->traces);
		drop_traces(session);
		return;
	}
	/* Another VM ends the profile of the process, on its own thread. */
	traces_abandon(session->traces);
	session->traces = NULL;
}

/* ---- the parts ------------------------------------------------------------ */

static int open_threads(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct sampled_threads_options threads_options = {
		.all_threads = options->process,
		.first_clock = options->first_clock,
		.event = options->event,
		.overhead_permille = options->overhead_permille,
		.interval_ns = options->interval_ns,
		.sampler =
			{
				.mode = options->mode,
				.vm = &session->vm,
				.backtracer = options->backtracer,
				.arena = options->perf ? &profile.arena : NULL,
				.fast_address = session->fast_address,
				.marker_address = session->marker_address,
			},
	};

	session->threads = sampled_threads_open(&threads_options, error);
	return session->threads ? 0 : -1;
}

static void refresh_threads(void *context)
{
	sampled_threads_refresh(context);
}

static uint32_t next_change(void *context, uint64_t *interval_ns)
{
	return sampled_threads_next_change(context, interval_ns);
}

static struct sampler *thread_at(void *context, size_t index)
{
	return sampled_threads_at(context, index);
}

static void read_thread_counters(void *context,
                                 struct sampler_counters *counters)
{
	sampled_threads_read_counters(context, counters);
}

static void disable_threads(void *context)
{
	sampled_threads_disable(context);
}

/* Without a writer nobody decodes what the opening of the VM left out. */
static int complete_tables(const struct session *session, struct error *error)
{
	if (session->options.mode != LUAM_SYSPROF_DEFAULT)
		return 0;
	return unwind_tables_refresh(0, UNWIND_NO_BUDGET, error);
}

/* From the file's name to one of this process: "dump.bin.PID", cut off where a
 * parent had put its own. */
static void add_process_id(struct session *session)
{
	size_t length = strlen(session->path);

	if (length == 0)
		return;
	if (session->is_child)
		length = (size_t)(strrchr(session->path, '.') - session->path);
	session->is_child = true;
	snprintf(session->path + length, sizeof(session->path) - length, ".%d",
	         (int)getpid());
}

static int copy_path(struct session *session, struct error *error)
{
	const char *path = session->options.path;
	char directory[PATH_MAX];
	int length;

	session->options.path = NULL;
	if (!path)
		return 0;
	if (path[0] == '/' || !getcwd(directory, sizeof(directory)))
		length = snprintf(session->path, sizeof(session->path), "%s",
		                  path);
	else
		length = snprintf(session->path, sizeof(session->path), "%s/%s",
		                  directory, path);
	/* With room for a process id. */
	if (length + 12 < (int)sizeof(session->path))
		return 0;
	return error_set(error, PROFILE_ERRIO, ENAMETOOLONG, "%.200s: %s", path,
	                 strerror(ENAMETOOLONG));
}

static int open_writer(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct writer *writer;
	struct writer_options writer_options = {
		.sources =
			{
				.context = session->threads,
				.refresh = refresh_threads,
				.next_change = next_change,
				.at = thread_at,
				.read_counters = read_thread_counters,
				.disable = disable_threads,
			},
		.mode = options->mode,
		.interval_ns = options->interval_ns,
		.clock_name = sample_clock_name(
			sampled_threads_clock(session->threads)),
		.vm_description = session->vm.description,
		.fast_names = &session->fast_names,
		.path = session->path[0] ? session->path : NULL,
		.callback = options->writer,
		.context = options->context,
		.buffer = options->buffer,
		.buffer_bytes = options->buffer_bytes,
		.names = options->perf ? profile.names : NULL,
		.fast_address = session->fast_address,
		.marker_address = session->marker_address,
	};

	if (options->mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	writer = writer_open(&writer_options, error);
	if (!writer)
		return -1;
	pthread_mutex_lock(&profile.lock);
	session->writer = writer;
	session->writer_thread = writer_thread(writer);
	session->has_writer_thread = true;
	pthread_mutex_unlock(&profile.lock);
	return 0;
}

/* Takes it away from those that look at the session, then waits for its end. */
static int close_writer(struct session *session, struct error *error)
{
	struct writer *writer;

	pthread_mutex_lock(&profile.lock);
	writer = session->writer;
	session->writer = NULL;
	pthread_mutex_unlock(&profile.lock);
	return writer ? writer_close(writer, error) : 0;
}

/* Stops the signals, then everything that they lead to. */
static void stop_sampling(struct session *session)
{
	if (session->threads)
		sampled_threads_stop(session->threads);
	release_signal(session);
}

static void free_session(struct session *session)
{
	if (session->threads)
		sampled_threads_close(session->threads);
	free(session);
}

/* ---- start ---------------------------------------------------------------- */

static int open_parts(struct session *session, lua_State *L,
                      struct error *error)
{
	if (decide_perf(&session->options, error) < 0 ||
	    choose_signal(session, error) < 0 ||
	    copy_path(session, error) < 0 || open_vm(session, L, error) < 0 ||
	    sample_signal_check(error) < 0 ||
	    complete_tables(session, error) < 0 ||
	    reserve_perf_ranges(session, error) < 0)
		return -1;
	if (open_threads(session, error) < 0 ||
	    open_writer(session, error) < 0 ||
	    watch_traces(session, L, error) < 0)
		return -1;
	return take_signal(session, error);
}

static void discard_session(struct session *session, lua_State *L)
{
	stop_sampling(session);
	unwatch_traces(session, L);
	close_writer(session, NULL);
	vm_guard_drop(L, &session_guard);
	forget_session(session);
	free_session(session);
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
	struct session *session = profile.sessions;

	while (session && !is_in_the_way(session, registry, process))
		session = session->next;
	return session;
}

/* A callback of the host runs on it: it would wait for itself. */
static bool is_writer_thread(void)
{
	const struct session *session = profile.sessions;

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

	pthread_mutex_lock(&profile.lock);
	refused = find_in_the_way(session->registry,
	                          session->options.process) != NULL ||
	          is_writer_thread();
	if (!refused) {
		profile.last = (struct session_report){0};
		session->serial = ++profile.serial;
		profile.process_id = getpid();
		session->next = profile.sessions;
		profile.sessions = session;
	}
	pthread_mutex_unlock(&profile.lock);
	return refused ? -1 : 0;
}

static void watch_forks(void);

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

	pthread_once(&forks_watched, watch_forks);
	session = new_session(L, options, error);
	if (!session)
		return -1;
	if (open_parts(session, L, error) < 0) {
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

/* The dump is whole then, so this is told only where nothing worse is. */
static int check_perf_names(const struct session *session, int result,
                            struct error *error)
{
	const char *path;

	if (!session->options.perf)
		return result;
	path = perf_names_failed(profile.names);
	if (!path || result < 0)
		return result;
	return error_set(error, PROFILE_ERRIO, EIO,
	                 "%s: not all names for perf could be written", path);
}

/* Ends a session whose state was made STOPPING by the caller. */
static int end_session(struct session *session, struct error *error)
{
	struct session_options options = session->options;
	struct session_report report = {0};
	int result = 0;

	stop_sampling(session);
	result = close_writer(session, error);
	result = check_perf_names(session, result, error);
	read_report(session, &report);

	pthread_mutex_lock(&profile.lock);
	profile.last = report;
	pthread_mutex_unlock(&profile.lock);
	forget_session(session);
	free_session(session);
	return call_on_stop(&options, result, error);
}

/* The session that L's VM is in: its own, or that of the process. With the lock
 * held. */
static struct session *session_of(lua_State *L)
{
	struct session *session = find_session(registry_of(L));

	if (session || !profile.sessions)
		return session;
	return profile.sessions->options.process ? profile.sessions : NULL;
}

/* Makes the state STOPPING and hands out the session, or refuses. */
static struct session *claim_end(lua_State *L, struct error *error)
{
	struct session *session = session_of(L);

	if (!profile.sessions ||
	    (session && session->state != SESSION_RUNNING)) {
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

	pthread_mutex_lock(&profile.lock);
	session = claim_end(L, error);
	pthread_mutex_unlock(&profile.lock);
	if (!session)
		return -1;
	vm_guard_drop(L, &session_guard);
	unwatch_traces(session, L);
	return end_session(session, error);
}

/* ---- questions ------------------------------------------------------------ */

bool session_is_running(void)
{
	bool running;

	pthread_mutex_lock(&profile.lock);
	running = profile.sessions != NULL;
	pthread_mutex_unlock(&profile.lock);
	return running;
}

bool session_is_in_the_way(lua_State *L)
{
	bool found;

	pthread_mutex_lock(&profile.lock);
	found = find_in_the_way(registry_of(L), false) != NULL ||
	        (profile.sessions && (!L || is_writer_thread()));
	pthread_mutex_unlock(&profile.lock);
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

	pthread_mutex_lock(&profile.lock);
	session = session_of(L);
	if (!session)
		session = profile.sessions;
	*report = profile.last;
	report->running = session != NULL;
	if (session && has_report(session))
		read_report(session, report);
	pthread_mutex_unlock(&profile.lock);
}

int session_check_available(lua_State *L, struct error *error)
{
	struct sample_clock clock;

	if (vm_guard_check(L, error) < 0)
		return -1;
	if (session_is_in_the_way(L))
		return 0;
	if (sample_signal_check(error) < 0 ||
	    sample_clock_open(&clock, SAMPLE_CLOCK_PERF,
	                      (pid_t)syscall(SYS_gettid),
	                      SAMPLE_INTERVAL_NS_MAX, error) < 0)
		return -1;
	sample_clock_close(&clock);
	return 0;
}

/* ---- fork and exit -------------------------------------------------------- */

static void lock_before_fork(void)
{
	pthread_mutex_lock(&profile.lock);
	if (profile.names)
		perf_names_before_fork(profile.names);
}

static void unlock_in_parent(void)
{
	if (profile.names)
		perf_names_in_parent(profile.names);
	pthread_mutex_unlock(&profile.lock);
}

/* Starts the same profile in the child, in a file of its own. The VM is as it was
 * checked in the parent. Where it fails the child is not profiled. */
static void follow_in_child(const struct session *parent)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return;
	session->options = parent->options;
	session->options.perf = PERF_NAMES_OFF;
	session->registry = parent->registry;
	session->vm = parent->vm;
	session->fast_names = parent->fast_names;
	memcpy(session->path, parent->path, sizeof(session->path));
	session->is_child = parent->is_child;
	add_process_id(session);
	session->serial = ++profile.serial;
	profile.process_id = getpid();
	session->state = SESSION_RUNNING;
	profile.sessions = session;
	if (open_threads(session, NULL) == 0 &&
	    open_writer(session, NULL) == 0 &&
	    take_signal(session, NULL) == 0 &&
	    sampled_threads_start(session->threads, NULL) == 0)
		return;
	stop_sampling(session);
	close_writer(session, NULL);
	forget_session(session);
	free_session(session);
}

/* The writer thread is the parent's alone, and so are the clock and the dump:
 * the child lets go of them without writing a byte. It goes on to tell perf of
 * its traces, by files of its own. */
static void forget_in_child(void)
{
	struct session *session, *follow = NULL;

	sampler_detach_all();
	for (session = profile.sessions; session; session = session->next) {
		if (session->threads)
			sampled_threads_abandon(session->threads);
		if (session->writer)
			writer_abandon(session->writer);
		if (session->options.follow_forks &&
		    session->state == SESSION_RUNNING)
			follow = session;
		if (session->owns_perf) {
			profile.orphan = session->traces;
			profile.orphan_serial = session->serial;
		}
	}
	sample_signal_after_fork();
	unwind_tables_after_fork();
	if (profile.names)
		perf_names_in_child(profile.names);
	profile.perf_owned = false;
	profile.sessions = NULL;
	profile.last = (struct session_report){0};
	pthread_mutex_init(&profile.lock, NULL);
	if (follow)
		follow_in_child(follow);
}

static void watch_forks(void)
{
	pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

static void end_one_at_exit(struct session *session)
{
	stop_sampling(session);
	if (!session->options.writer)
		close_writer(session, NULL);
}

/* A child of vfork(2) shares all memory, and none of it is its own. */
static bool is_our_process(void)
{
	return profile.process_id == getpid();
}

/* One that is RUNNING, and STOPPING from now on; NULL: there is none. */
static struct session *take_any_session(void)
{
	struct session *session;

	if (!is_our_process() || pthread_mutex_trylock(&profile.lock) != 0)
		return NULL;
	session = profile.sessions;
	while (session && session->state != SESSION_RUNNING)
		session = session->next;
	if (session)
		session->state = SESSION_STOPPING;
	pthread_mutex_unlock(&profile.lock);
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
	pthread_mutex_lock(&profile.lock);
	for (session = profile.sessions; session; session = session->next) {
		if (session->state != SESSION_RUNNING)
			continue;
		sampled_threads_pause(session->threads, true);
		if (session->writer && !session->options.writer)
			writer_flush(session->writer);
	}
	if (profile.sessions)
		sample_signal_discard_pending();
	pthread_mutex_unlock(&profile.lock);
}

void session_resume_all(void)
{
	struct session *session;

	if (!is_our_process())
		return;
	pthread_mutex_lock(&profile.lock);
	for (session = profile.sessions; session; session = session->next)
		if (session->state == SESSION_RUNNING)
			sampled_threads_pause(session->threads, false);
	pthread_mutex_unlock(&profile.lock);
}
