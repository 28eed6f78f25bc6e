// SPDX-License-Identifier: MIT
/*
 * Session: the one profile of a process and the order in which its parts come
 * and go. Ordinary code on any thread; the lock is held for a few loads and
 * stores only, so fork(2) and the callbacks of the host never wait for I/O.
 */
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <lauxlib.h>

#include "load_sig.h"
#include "perf_names.h"
#include "traces.h"
#include "host/unwind_table.h"
#include "vm/vm.h"
#include "writer.h"
#include "../perfmap/arena_sig.h"

#define PERF_VARIABLE    "LUAJIT_SYSPROF_PERF"
#define PERF_RANGE_BYTES 16 /* of a library function, of a marker */

enum session_state {
	SESSION_IDLE,
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPING,
};

/* What the handler and the writer use stays in place from start to stop. */
struct session {
	struct session_options options;
	uint64_t serial; /* tells it from earlier ones */
	struct vm vm;
	struct fast_names fast_names;
	uint64_t fast_address;   /* as in struct sampler_options */
	uint64_t marker_address; /* as in struct sampler_options */
	bool clock_open;
	struct sample_clock clock;
	struct sampler *sampler;
	struct writer *writer; /* NULL in mode D */
	struct traces *traces; /* NULL: perf is off */
	bool handler_installed;
	struct sigaction previous_action;
};

/* The one static state of the library outside the handler: there is one
 * SIGPROF and one /tmp/perf-<pid>.map in a process. */
static struct {
	pthread_mutex_t lock; /* guards all but the names for perf */
	enum session_state state;
	struct session *session; /* RUNNING and STOPPING */
	uint64_t serial;         /* of the last session */
	struct session_report last;

	/* Names for perf outlive a session, since perf reads them when the
	 * report runs. They belong to whoever made the state STARTING. */
	bool arena_open;
	struct address_arena arena;
	struct perf_names *names; /* NULL: perf was never on */
	struct traces *orphan;    /* in a child: of the parent's session */
	uint64_t orphan_serial;
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_state(enum session_state state, struct session *session)
{
	pthread_mutex_lock(&profile.lock);
	profile.state = state;
	profile.session = session;
	pthread_mutex_unlock(&profile.lock);
}

/* ---- the SIGPROF action --------------------------------------------------- */

static bool is_our_action(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 &&
	       action->sa_sigaction == sampler_handle_signal;
}

static bool has_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Another profiler of the process would take our signals, or we its. */
static int check_signal_is_free(struct error *error)
{
	struct sigaction action;
	struct itimerval timer;
	sigset_t blocked;

	if (sigaction(SAMPLE_CLOCK_SIGNAL, NULL, &action) == 0 &&
	    has_handler(&action) && !is_our_action(&action))
		return error_set(error, PROFILE_ERRUSE, EBUSY,
		                 "SIGPROF has a handler already: another "
		                 "profiler (such as jit.p) is active in this "
		                 "process; stop it first");
	if (getitimer(ITIMER_PROF, &timer) == 0 &&
	    (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0))
		return error_set(error, PROFILE_ERRUSE, EBUSY,
		                 "the timer ITIMER_PROF is running: another "
		                 "profiler is active in this process; stop it "
		                 "first");
	if (pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
	    sigismember(&blocked, SAMPLE_CLOCK_SIGNAL) == 1)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "SIGPROF is blocked on this thread, so no "
		                 "sample would arrive; unblock it with "
		                 "pthread_sigmask()");
	return 0;
}

/* Other signals wait until a sample is taken: a handler that jumps out of ours
 * would leave the sampler half-way. Faults cannot wait. */
static void set_handler_mask(sigset_t *mask)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

	sigfillset(mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(mask, faults[i]);
}

static int install_handler(struct session *session, struct error *error)
{
	struct sigaction action = {
		.sa_sigaction = sampler_handle_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	set_handler_mask(&action.sa_mask);
	if (sigaction(SAMPLE_CLOCK_SIGNAL, &action, &session->previous_action) <
	    0)
		return error_set(error, PROFILE_ERRIO, errno,
		                 "SIGPROF cannot be handled: %s",
		                 strerror(errno));
	session->handler_installed = true;
	return 0;
}

/*
 * Puts the action back that was there before. The clock has been closed, but
 * what it sent may still be pending on any thread, and would kill a process
 * whose action is the default one: to ignore a signal discards those (POSIX).
 * A handler that somebody else has put over ours is left alone.
 */
static void restore_handler(struct session *session)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction current;

	if (!session->handler_installed)
		return;
	session->handler_installed = false;
	if (sigaction(SAMPLE_CLOCK_SIGNAL, NULL, &current) < 0 ||
	    !is_our_action(&current))
		return;
	sigaction(SAMPLE_CLOCK_SIGNAL, &ignore, NULL);
	sigaction(SAMPLE_CLOCK_SIGNAL, &session->previous_action, NULL);
}

/* ---- what needs the Lua API ----------------------------------------------- */

/* Its address is the key of the guard in the registry. */
static const char guard_key;

/* A userdata that lua_close() collects, and so ends the profile of its VM. */
struct guard {
	uint64_t serial; /* of the session that it guards */
};

static int end_session(struct session *session, struct error *error);
static void drop_traces(struct session *session);
static void drop_orphan(void);

/* The session with this serial number, now STOPPING, or NULL. */
static struct session *take_session(uint64_t serial)
{
	struct session *session = NULL;

	pthread_mutex_lock(&profile.lock);
	if (profile.state == SESSION_RUNNING &&
	    profile.session->serial == serial) {
		session = profile.session;
		profile.state = SESSION_STOPPING;
	}
	pthread_mutex_unlock(&profile.lock);
	return session;
}

static int collect_guard(lua_State *L)
{
	const struct guard *guard = lua_touserdata(L, 1);
	struct session *session = guard ? take_session(guard->serial) : NULL;

	if (guard && profile.orphan && profile.orphan_serial == guard->serial)
		drop_orphan();
	if (!session)
		return 0;
	drop_traces(session);
	end_session(session, NULL);
	return 0;
}

static void push_guard_key(lua_State *L)
{
	lua_pushlightuserdata(L, (void *)&guard_key);
}

static void push_guard(lua_State *L, uint64_t serial)
{
	struct guard *guard;

	push_guard_key(L);
	guard = lua_newuserdata(L, sizeof(*guard));
	guard->serial = serial;
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, collect_guard);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

/* Arguments and result of open_vm(), which may throw where memory ends. */
struct vm_request {
	struct vm *vm;
	struct session *session; /* NULL: only asks whether it would work */
	struct error *error;
	int result;
};

static int open_vm(lua_State *L)
{
	struct vm_request *request = lua_touserdata(L, 1);

	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	request->result = vm_open(request->vm, L, request->error);
	if (request->result < 0 || !request->session)
		return 0;
	vm_read_fast_names(request->vm, L, &request->session->fast_names);
	push_guard(L, request->session->serial);
	return 0;
}

static int open_vm_protected(lua_State *L, struct vm_request *request)
{
	const char *message;

	request->result = -1;
	if (lua_cpcall(L, open_vm, request) == 0)
		return request->result;
	message = lua_tostring(L, -1);
	error_set(request->error, PROFILE_ERRMEM, ENOMEM,
	          "the VM could not be read: %s",
	          message ? message : "out of memory");
	lua_pop(L, 1);
	return -1;
}

static int drop_guard(lua_State *L)
{
	push_guard_key(L);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_isuserdata(L, -1)) {
		lua_pushnil(L);
		lua_setmetatable(L, -2);
	}
	push_guard_key(L);
	lua_pushnil(L);
	lua_rawset(L, LUA_REGISTRYINDEX);
	return 0;
}

/* Where this fails the guard stays, and finds no session of its number. */
static void drop_guard_protected(lua_State *L)
{
	if (lua_cpcall(L, drop_guard, NULL) != 0)
		lua_pop(L, 1);
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

static int reserve_perf_ranges(struct session *session, struct error *error)
{
	if (!session->options.perf)
		return 0;
	if (open_perf_names(&session->options, error) < 0)
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
	if (session->traces)
		call_protected(L, unwatch_inside, session->traces);
	drop_traces(session);
}

/* ---- the parts ------------------------------------------------------------ */

static int open_sampler(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct sampler_options sampler_options = {
		.mode = options->mode,
		.vm = &session->vm,
		.clock = &session->clock,
		.backtracer = options->backtracer,
		.arena = options->perf ? &profile.arena : NULL,
		.fast_address = session->fast_address,
		.marker_address = session->marker_address,
	};

	session->sampler = sampler_open(&sampler_options, error);
	return session->sampler ? 0 : -1;
}

/* Without a writer nobody decodes what the opening of the VM left out. */
static int complete_tables(const struct session *session, struct error *error)
{
	if (session->options.mode != LUAM_SYSPROF_DEFAULT)
		return 0;
	return unwind_tables_refresh(0, UNWIND_NO_BUDGET, error);
}

static int open_writer(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct writer_options writer_options = {
		.sampler = session->sampler,
		.mode = options->mode,
		.interval_ns = options->interval_ns,
		.clock_name = sample_clock_name(&session->clock),
		.vm_description = session->vm.description,
		.fast_names = &session->fast_names,
		.path = options->path,
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
	session->writer = writer_open(&writer_options, error);
	session->options.path = NULL; /* the caller's; the writer has a copy */
	return session->writer ? 0 : -1;
}

/* Stops the signals, then everything that they lead to. */
static void stop_sampling(struct session *session)
{
	if (session->sampler)
		sampler_disable(session->sampler);
	if (session->clock_open) {
		sample_clock_stop(&session->clock);
		sample_clock_close(&session->clock);
	}
	session->clock_open = false;
	restore_handler(session);
}

static void free_session(struct session *session)
{
	if (session->sampler)
		sampler_close(session->sampler);
	free(session);
}

/* ---- start ---------------------------------------------------------------- */

static int open_parts(struct session *session, lua_State *L,
                      struct error *error)
{
	struct vm_request request = {
		.vm = &session->vm,
		.session = session,
		.error = error,
	};

	if (decide_perf(&session->options, error) < 0 ||
	    open_vm_protected(L, &request) < 0 ||
	    check_signal_is_free(error) < 0 ||
	    complete_tables(session, error) < 0 ||
	    reserve_perf_ranges(session, error) < 0)
		return -1;
	if (sample_clock_open(&session->clock, session->options.first_clock,
	                      (pid_t)syscall(SYS_gettid),
	                      session->options.interval_ns, error) < 0)
		return -1;
	session->clock_open = true;
	if (open_sampler(session, error) < 0 ||
	    open_writer(session, error) < 0 ||
	    watch_traces(session, L, error) < 0)
		return -1;
	return install_handler(session, error);
}

static void discard_session(struct session *session, lua_State *L)
{
	stop_sampling(session);
	unwatch_traces(session, L);
	if (session->writer)
		writer_close(session->writer, NULL);
	drop_guard_protected(L);
	free_session(session);
	set_state(SESSION_IDLE, NULL);
}

static int refuse_second(struct error *error)
{
	return error_set(error, PROFILE_ERRRUN, EINVAL,
	                 "profiler is running already");
}

/* Makes the state STARTING, or refuses. The counters start again in any case.
 */
static int claim_profile(uint64_t *serial)
{
	bool idle;

	pthread_mutex_lock(&profile.lock);
	idle = profile.state == SESSION_IDLE;
	if (idle) {
		profile.state = SESSION_STARTING;
		profile.last = (struct session_report){0};
		*serial = ++profile.serial;
	}
	pthread_mutex_unlock(&profile.lock);
	return idle ? 0 : -1;
}

static void watch_forks(void);

int session_start(lua_State *L, const struct session_options *options,
                  struct error *error)
{
	static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
	struct session *session;
	uint64_t serial;

	pthread_once(&forks_watched, watch_forks);
	if (claim_profile(&serial) < 0)
		return refuse_second(error);
	session = calloc(1, sizeof(*session));
	if (!session) {
		set_state(SESSION_IDLE, NULL);
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for a profile");
	}
	session->options = *options;
	session->serial = serial;
	if (open_parts(session, L, error) < 0) {
		discard_session(session, L);
		return -1;
	}
	sampler_attach(session->sampler);
	set_state(SESSION_RUNNING, session);
	if (sample_clock_start(&session->clock, error) < 0) {
		set_state(SESSION_STARTING, NULL);
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
	report->clock = sample_clock_name(&session->clock);
	sampler_read_counters(session->sampler, &report->counters);
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
	if (session->writer)
		result = writer_close(session->writer, error);
	result = check_perf_names(session, result, error);
	read_report(session, &report);

	pthread_mutex_lock(&profile.lock);
	profile.last = report;
	profile.session = NULL;
	pthread_mutex_unlock(&profile.lock);
	free_session(session);
	set_state(SESSION_IDLE, NULL);
	return call_on_stop(&options, result, error);
}

/* Makes the state STOPPING and hands out the session, or refuses. */
static struct session *claim_end(lua_State *L, struct error *error)
{
	struct session *session;

	if (profile.state != SESSION_RUNNING) {
		error_set(error, PROFILE_ERRRUN, EINVAL,
		          "profiler is not running");
		return NULL;
	}
	session = profile.session;
	if (session->writer && writer_is_current_thread(session->writer)) {
		error_set(error, PROFILE_ERRUSE, EDEADLK,
		          "the writer callback cannot stop the profile; set "
		          "*data to NULL to end the stream");
		return NULL;
	}
	if (!vm_owns(&session->vm, L)) {
		error_set(error, PROFILE_ERRUSE, EINVAL,
		          "the profile that is running was started in another "
		          "Lua VM; stop it there");
		return NULL;
	}
	profile.state = SESSION_STOPPING;
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
	drop_guard_protected(L);
	unwatch_traces(session, L);
	return end_session(session, error);
}

/* ---- questions ------------------------------------------------------------ */

bool session_is_running(void)
{
	bool running;

	pthread_mutex_lock(&profile.lock);
	running = profile.state != SESSION_IDLE;
	pthread_mutex_unlock(&profile.lock);
	return running;
}

void session_read_report(struct session_report *report)
{
	pthread_mutex_lock(&profile.lock);
	*report = profile.last;
	report->running = profile.state != SESSION_IDLE;
	if (profile.session)
		read_report(profile.session, report);
	pthread_mutex_unlock(&profile.lock);
}

int session_check_available(lua_State *L, struct error *error)
{
	struct vm vm;
	struct vm_request request = {.vm = &vm, .error = error};
	struct sample_clock clock;

	if (open_vm_protected(L, &request) < 0)
		return -1;
	if (session_is_running())
		return 0;
	if (check_signal_is_free(error) < 0 ||
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

/* The writer thread is the parent's alone, and so are the clock and the dump:
 * the child lets go of them without writing a byte. It goes on to tell perf of
 * its traces, by files of its own. */
static void forget_in_child(void)
{
	struct session *session = profile.session;

	if (session) {
		sampler_attach(NULL);
		load_faults_release();
		sample_clock_abandon(&session->clock);
		restore_handler(session);
		if (session->writer)
			writer_abandon(session->writer);
	}
	unwind_tables_after_fork();
	if (profile.names)
		perf_names_in_child(profile.names);
	if (session) {
		profile.orphan = session->traces;
		profile.orphan_serial = session->serial;
	}
	profile.session = NULL;
	profile.state = SESSION_IDLE;
	profile.last = (struct session_report){0};
	pthread_mutex_init(&profile.lock, NULL);
}

static void watch_forks(void)
{
	pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

/*
 * A process that ends without stop keeps what it has recorded. Other threads
 * may still run Lua, so nothing is freed; and the host's buffer and callback
 * may have gone with main(), so they are not used.
 */
__attribute__((destructor)) static void end_at_exit(void)
{
	struct session *session;

	if (pthread_mutex_trylock(&profile.lock) != 0)
		return;
	session = profile.state == SESSION_RUNNING ? profile.session : NULL;
	if (session)
		profile.state = SESSION_STOPPING;
	pthread_mutex_unlock(&profile.lock);
	if (!session)
		return;
	stop_sampling(session);
	if (session->writer && !session->options.writer)
		writer_close(session->writer, NULL);
}
