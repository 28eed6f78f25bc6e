// SPDX-License-Identifier: MIT
/*
 * C API: the contract of lmisclib.h on top of a session. Ordinary code, on any
 * thread; the callbacks that are set here belong to the whole process.
 */
#include "lmisclib.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "session.h"

#define NS_PER_MS         UINT64_C(1000000)
#define OVERHEAD_PERMILLE 50

static struct {
	pthread_mutex_t lock;
	luam_Sysprof_writer writer;
	luam_Sysprof_on_stop on_stop;
	luam_Sysprof_backtracer backtracer;
} callbacks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the last error of a thread ------------------------------------------ */

/* A key instead of thread-local storage, of which a library that is loaded
 * late may get very little. */
static pthread_key_t last_error_key;
static bool last_error_key_made;

static void make_last_error_key(void)
{
	last_error_key_made = pthread_key_create(&last_error_key, free) == 0;
}

/* NULL: none, or (make) out of memory. */
static struct error *last_error(bool make)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct error *error;

	pthread_once(&once, make_last_error_key);
	if (!last_error_key_made)
		return NULL;
	error = pthread_getspecific(last_error_key);
	if (error || !make)
		return error;
	error = calloc(1, sizeof(*error));
	if (error && pthread_setspecific(last_error_key, error) != 0) {
		free(error);
		error = NULL;
	}
	return error;
}

/* Keeps the error for luaM_sysprof_last_error() and gives its code. */
static int fail(const struct error *error)
{
	struct error *last = last_error(true);

	if (last)
		*last = *error;
	errno = error->sys_errno;
	return error->code;
}

const char *luaM_sysprof_last_error(void)
{
	const struct error *error = last_error(false);

	return error ? error->text : "";
}

/* ---- callbacks ------------------------------------------------------------ */

static int check_idle(const char *what, struct error *error)
{
	if (!session_is_running())
		return 0;
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "the %s cannot be changed while a profile is running; "
	                 "stop it first",
	                 what);
}

static int check_callback(const char *what, bool is_null, struct error *error)
{
	if (is_null)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "the %s must not be NULL", what);
	return check_idle(what, error);
}

int luaM_sysprof_set_writer(luam_Sysprof_writer writer)
{
	struct error error;

	if (check_callback("writer callback", writer == NULL, &error) < 0)
		return fail(&error);
	pthread_mutex_lock(&callbacks.lock);
	callbacks.writer = writer;
	pthread_mutex_unlock(&callbacks.lock);
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop)
{
	struct error error;

	if (check_callback("on_stop callback", on_stop == NULL, &error) < 0)
		return fail(&error);
	pthread_mutex_lock(&callbacks.lock);
	callbacks.on_stop = on_stop;
	pthread_mutex_unlock(&callbacks.lock);
	return PROFILE_SUCCESS;
}

int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer)
{
	struct error error;

	if (check_idle("backtracer", &error) < 0)
		return fail(&error);
	pthread_mutex_lock(&callbacks.lock);
	callbacks.backtracer = backtracer;
	pthread_mutex_unlock(&callbacks.lock);
	return PROFILE_SUCCESS;
}

/* ---- start ---------------------------------------------------------------- */

static struct session_options
session_options_of(const struct luam_Sysprof_Options *opt)
{
	struct session_options options = {
		.mode = opt->mode,
		.first_clock = SAMPLE_CLOCK_PERF,
		.overhead_permille = OVERHEAD_PERMILLE,
		.buffer = opt->buf,
		.buffer_bytes = opt->len,
		.context = opt->ctx,
	};

	pthread_mutex_lock(&callbacks.lock);
	options.writer = callbacks.writer;
	options.on_stop = callbacks.on_stop;
	options.backtracer = callbacks.backtracer;
	pthread_mutex_unlock(&callbacks.lock);
	return options;
}

static int check_output(const struct session_options *options,
                        struct error *error)
{
	if (options->mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	if (!options->buffer || options->buffer_bytes == 0)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "modes LEAF and CALLGRAPH need a buffer of at "
		                 "least 1 byte, got %s",
		                 options->buffer ? "len 0" : "buf NULL");
	if (!options->writer || !options->on_stop)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "modes LEAF and CALLGRAPH need %s; set it "
		                 "before",
		                 options->writer ? "luaM_sysprof_set_on_stop()"
		                                 : "luaM_sysprof_set_writer()");
	return 0;
}

static int check_interval(uint64_t interval_ms, struct error *error)
{
	if (interval_ms > 0 &&
	    interval_ms <= SAMPLE_INTERVAL_NS_MAX / NS_PER_MS)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EINVAL,
	                 "interval must be from 1 to %" PRIu64
	                 " milliseconds, got %" PRIu64,
	                 SAMPLE_INTERVAL_NS_MAX / NS_PER_MS, interval_ms);
}

/* In the order that lmisclib.h promises. */
static int check_options(lua_State *L, const struct session_options *options,
                         uint64_t interval_ms, struct error *error)
{
	if (session_is_in_the_way(L))
		return error_set(error, PROFILE_ERRRUN, EINVAL,
		                 "profiler is running already");
	if (options->mode > LUAM_SYSPROF_CALLGRAPH)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "mode must be LUAM_SYSPROF_DEFAULT (0), "
		                 "_LEAF (1) or _CALLGRAPH (2), got %u",
		                 options->mode);
	if (check_output(options, error) < 0 ||
	    check_interval(interval_ms, error) < 0)
		return -1;
	if (!L)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "the lua_State must not be NULL");
	return 0;
}

int luaM_sysprof_start(lua_State *L, const struct luam_Sysprof_Options *opt)
{
	struct session_options options;
	struct error error;

	if (!opt) {
		error_set(&error, PROFILE_ERRUSE, EINVAL,
		          "the options must not be NULL");
		return fail(&error);
	}
	options = session_options_of(opt);
	options.interval_ns = opt->interval * NS_PER_MS;
	if (check_options(L, &options, opt->interval, &error) == 0 &&
	    session_start(L, &options, &error) == 0)
		return PROFILE_SUCCESS;
	if (options.on_stop)
		options.on_stop(options.context, options.buffer);
	return fail(&error);
}

int luaM_sysprof_stop(lua_State *L)
{
	struct error error;

	if (session_stop(L, &error) < 0)
		return fail(&error);
	return PROFILE_SUCCESS;
}

/* ---- report --------------------------------------------------------------- */

int luaM_sysprof_report(struct luam_Sysprof_Counters *counters)
{
	struct session_report report = {0};
	struct error error;
	const uint64_t *by_state = report.counters.by_state;

	if (!counters) {
		error_set(&error, PROFILE_ERRUSE, EINVAL,
		          "the counters must not be NULL");
		return fail(&error);
	}
	session_read_report(NULL, &report);
	*counters = (struct luam_Sysprof_Counters){
		.vmst_interp = by_state[STATE_INTERP],
		.vmst_lfunc = by_state[STATE_LFUNC],
		.vmst_ffunc = by_state[STATE_FFUNC],
		.vmst_cfunc = by_state[STATE_CFUNC],
		.vmst_gc = by_state[STATE_GC],
		.vmst_exit = by_state[STATE_EXIT],
		.vmst_record = by_state[STATE_RECORD],
		.vmst_opt = by_state[STATE_OPT],
		.vmst_asm = by_state[STATE_ASM],
		.vmst_trace = by_state[STATE_TRACE],
		.samples = report.counters.samples,
	};
	return PROFILE_SUCCESS;
}
