// SPDX-License-Identifier: MIT
/*
 * Session: its parts, how they are opened and how they end. On the thread that
 * starts or stops it.
 */
#include "session_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lmisclib.h"
#include "sample_signal.h"
#include "host/unwind_table.h"

/* ---- the signal ----------------------------------------------------------- */

/* All profiles of the process share the signal. */
static int choose_signal(const struct session *session, struct error *error)
{
	int wanted = session->options.signal;
	bool free;

	pthread_mutex_lock(&sessions.lock);
	free = sessions.first == session && !session->next;
	if (free && wanted)
		sample_clock_set_signal(wanted);
	else if (free)
		sample_signal_choose(session->options.from_outside);
	pthread_mutex_unlock(&sessions.lock);
	if (free || !wanted || sample_clock_signal() == wanted)
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

/* ---- the parts ------------------------------------------------------------ */

static int open_threads(struct session *session, struct error *error)
{
	const struct session_options *options = &session->options;
	struct sampled_threads_options threads_options = {
		.all_threads = options->process,
		.spares_caller = options->from_outside,
		.first_clock = options->first_clock,
		.event = options->event,
		.kernel = options->kernel,
		.overhead_permille = options->overhead_permille,
		.interval_ns = options->interval_ns,
		.sampler =
			{
				.mode = options->mode,
				.vm = &session->vm,
				.backtracer = options->backtracer,
				.arena = session->perf.arena,
				.fast_address = session->perf.fast_address,
				.marker_address = session->perf.marker_address,
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

static void begin_dump(void *context)
{
	sampled_threads_begin_dump(context);
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

/* Without a writer nobody decodes what the opening of the VM left out; and where
 * no thread of the host waits, the first samples are better with all of it. */
static int complete_tables(const struct session *session, struct error *error)
{
	if (session->options.mode != LUAM_SYSPROF_DEFAULT &&
	    !session->options.from_outside)
		return 0;
	return unwind_tables_refresh(0, UNWIND_NO_BUDGET, error);
}

/* From the file's name to one of this process: "dump.bin.PID", cut off where a
 * parent had put its own. Those of a rotation have it anyway. */
static void add_process_id(struct session *session)
{
	size_t length = strlen(session->path);

	if (length == 0 || rotation_is_on(&session->options.rotation))
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
	/* With room for a process id, or the name of a rotation's dump. */
	if (length + ROTATION_SUFFIX_BYTES < (int)sizeof(session->path))
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
				.begin_dump = begin_dump,
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
		.fd = options->dump_fd,
		.rotation = options->rotation,
		.callback = options->writer,
		.context = options->context,
		.buffer = options->buffer,
		.buffer_bytes = options->buffer_bytes,
		.names = session->perf.names,
		.fast_address = session->perf.fast_address,
		.marker_address = session->perf.marker_address,
	};

	if (options->mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	writer = writer_open(&writer_options, error);
	if (!writer)
		return -1;
	pthread_mutex_lock(&sessions.lock);
	session->writer = writer;
	session->writer_thread = writer_thread(writer);
	session->has_writer_thread = true;
	pthread_mutex_unlock(&sessions.lock);
	return 0;
}

static struct writer *take_writer(struct session *session)
{
	struct writer *writer;

	pthread_mutex_lock(&sessions.lock);
	writer = session->writer;
	session->writer = NULL;
	pthread_mutex_unlock(&sessions.lock);
	return writer;
}

int session_close_writer(struct session *session, struct error *error)
{
	struct writer *writer = take_writer(session);

	if (!writer)
		return 0;
	writer_stop(writer);
	writer_read_facts(writer, &session->writer_facts);
	return writer_close(writer, error);
}

void session_discard_writer(struct session *session)
{
	struct writer *writer = take_writer(session);

	if (writer)
		writer_discard(writer);
}

void session_stop_sampling(struct session *session)
{
	if (session->threads)
		sampled_threads_stop(session->threads);
	release_signal(session);
}

void session_free(struct session *session)
{
	if (session->threads)
		sampled_threads_close(session->threads);
	free(session);
}

static int open_vm(struct session *session, lua_State *L, struct error *error)
{
	return vm_guard_open(&session->vm, L, &session->fast_names,
	                     session->options.outlives_vm ? NULL
	                                                  : &session_guard,
	                     session->serial, error);
}

int session_open_parts(struct session *session, lua_State *L,
                       struct error *error)
{
	const struct session_options *options = &session->options;

	session->perf = (struct perf_share){
		.kind = options->perf,
		.unwind = options->perf_unwind,
		.directory = options->perf_dir,
	};
	if (perf_share_decide(&session->perf,
	                      options->mode != LUAM_SYSPROF_DEFAULT,
	                      error) < 0 ||
	    choose_signal(session, error) < 0 ||
	    copy_path(session, error) < 0 || open_vm(session, L, error) < 0 ||
	    sample_signal_check(options->from_outside, error) < 0 ||
	    complete_tables(session, error) < 0 ||
	    perf_share_open(&session->perf, error) < 0)
		return -1;
	/* The writer empties the file: nothing but the last calls may fail then. */
	if (open_threads(session, error) < 0 ||
	    take_signal(session, error) < 0 || open_writer(session, error) < 0)
		return -1;
	return perf_share_watch(&session->perf, &session->vm, L,
	                        options->process, error);
}

int session_follow(struct session *session, const struct session *parent)
{
	session->options = parent->options;
	session->options.dump_fd = 0;
	session->registry = parent->registry;
	session->vm = parent->vm;
	session->fast_names = parent->fast_names;
	memcpy(session->path, parent->path, sizeof(session->path));
	session->is_child = parent->is_child;
	add_process_id(session);
	if (open_threads(session, NULL) < 0 || take_signal(session, NULL) < 0 ||
	    open_writer(session, NULL) < 0)
		return -1;
	return sampled_threads_start(session->threads, NULL);
}
