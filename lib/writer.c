// SPDX-License-Identifier: MIT
/*
 * Writer: drains the rings of samplers into the stream, on a thread of its
 * own. Everything but writer_open(), writer_close() and writer_abandon() runs
 * on that thread, which sleeps between two looks at the ring: the handler
 * cannot wake it.
 */
#include "writer.h"

#include <config.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump_file.h"
#include "dump_stream.h"
#include "object_writer.h"
#include "own_thread.h"
#include "sample_writer.h"
#include "host/unwind_table.h"
#include "stream/sysprof_write.h"

#define FILE_BUFFER_BYTES   (256u << 10)
#define FLUSH_WAIT_NS       UINT64_C(200000000)
#define SLEEP_NS_MIN        UINT64_C(1000000)
#define SLEEP_NS_MAX        UINT64_C(100000000)
#define REFRESH_INTERVAL_NS UINT64_C(50000000) /* of the sources */
#define FILL_WHOLE          1024               /* a ring without room */

/* How often the loaded objects are looked at: more often if a sample met code
 * without unwind rules, less often where a look takes long. */
#define LOOK_INTERVAL_NS     UINT64_C(500000000)
#define LOOK_INTERVAL_NS_MIN UINT64_C(100000000)
#define LOOK_INTERVAL_NS_MAX UINT64_C(1000000000)
#define LOOK_COST_FACTOR     50

_Static_assert(LOST_COUNT <= DUMP_STREAM_REASONS_MAX,
               "the stream counts all reasons");

enum writer_state {
	WRITER_STARTING,
	WRITER_RUNNING,
	WRITER_STOPPING, /* asked to end */
};

struct writer {
	struct writer_options options;
	bool has_file; /* else the callback takes the stream */
	struct dump_file file;
	struct rotation rotation;   /* with has_file; of options.rotation */
	struct dump_file next_file; /* while one takes the other's place */
	/* For others to read. */
	_Atomic uint64_t held_bytes, dump_count, removed_count, unwritten_count;
	uint8_t *buffer; /* options.buffer, or our own of FILE_BUFFER_BYTES */
	struct fast_names fast_names;

	pthread_t thread;
	pthread_mutex_t lock; /* guards state */
	pthread_cond_t changed;
	enum writer_state state;
	bool flush_wanted; /* guarded by lock */
	bool is_joined;    /* the thread has ended */
	bool is_refused; /* the first dump has failed; before WRITER_RUNNING */

	/* The thread's own, until it has ended. */
	struct dump_stream stream;
	int callback_errno;
	struct sample_writer *samples;
	struct object_writer objects;
	uint64_t lost_before[LOST_COUNT]; /* what earlier dumps say */
	/* Of the dump under way, as far as it was handed to the disk. */
	bool is_begun;
	uint64_t flushed_samples, flushed_lost[LOST_COUNT];
	uint64_t refreshed_ns; /* the sources, last */
	bool rule_missing;     /* since the last look at the loaded objects */
	uint64_t looked_ns;    /* at the loaded objects, last; 0: never */
	uint64_t look_cost_ns; /* of that look */
};

/* ---- where samples come from ---------------------------------------------- */

static struct sampler *source_at(const struct writer *writer, size_t index)
{
	const struct sample_sources *sources = &writer->options.sources;

	if (sources->at)
		return sources->at(sources->context, index);
	return index == 0 ? writer->options.sampler : NULL;
}

static void read_counters(const struct writer *writer,
                          struct sampler_counters *counters)
{
	const struct sample_sources *sources = &writer->options.sources;

	if (sources->read_counters)
		sources->read_counters(sources->context, counters);
	else
		sampler_read_counters(writer->options.sampler, counters);
}

static void disable_sources(const struct writer *writer)
{
	const struct sample_sources *sources = &writer->options.sources;

	if (sources->disable)
		sources->disable(sources->context);
	else
		sampler_disable(writer->options.sampler);
}

static void tell_intervals(struct writer *writer)
{
	const struct sample_sources *sources = &writer->options.sources;
	uint64_t interval_ns;
	uint32_t thread_id;

	if (!sources->next_change)
		return;
	while ((thread_id = sources->next_change(sources->context,
	                                         &interval_ns)) != 0)
		sysprof_write_interval(&writer->stream.encoder, thread_id,
		                       interval_ns);
}

/* Those that end were drained before. */
static void refresh_sources(struct writer *writer)
{
	const struct sample_sources *sources = &writer->options.sources;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!sources->refresh ||
	    now_ns - writer->refreshed_ns < REFRESH_INTERVAL_NS)
		return;
	writer->refreshed_ns = now_ns;
	sources->refresh(sources->context);
	tell_intervals(writer);
}

/* ---- output -------------------------------------------------------------- */

static size_t write_to_callback(const void **data, size_t bytes, void *context)
{
	struct writer *writer = context;
	size_t taken;

	errno = 0;
	taken = writer->options.callback(data, bytes, writer->options.context);
	if (taken < bytes || !*data)
		writer->callback_errno = errno != 0 ? errno : EIO;
	return taken;
}

static void note_held_bytes(struct writer *writer)
{
	size_t bytes = sizeof(*writer) +
	               sample_writer_held_bytes(writer->samples) +
	               unwind_tables_held_bytes();

	if (writer->has_file)
		bytes += FILE_BUFFER_BYTES;
	atomic_store(&writer->held_bytes, bytes);
}

static bool rotates(const struct writer *writer)
{
	return rotation_is_on(&writer->options.rotation);
}

static void note_flushed(struct writer *writer)
{
	writer->is_begun = true;
	writer->flushed_samples = sample_writer_count(writer->samples);
	memcpy(writer->flushed_lost, writer->stream.lost,
	       sizeof(writer->flushed_lost));
}

/* Flushes stream and map file together, so that what perf sees is never far
 * behind. Once the stream has failed for good nothing more is sampled. */
static void flush_all(struct writer *writer)
{
	if (writer->options.names)
		perf_names_flush(writer->options.names);
	if (!dump_stream_flush(&writer->stream) && !rotates(writer))
		disable_sources(writer);
	if (!writer->stream.failed && !writer->rotation.is_interrupted)
		note_flushed(writer);
	note_held_bytes(writer);
}

/* ---- samples ------------------------------------------------------------- */

/* A full disk must not let the ring fill up: it is emptied all the same. Returns
 * how full it was, of FILL_WHOLE. */
static size_t drain_ring(struct writer *writer, struct ring *ring)
{
	const struct ring_record *record;
	size_t bytes = 0;

	while ((record = ring_peek(ring)) != NULL) {
		if (!writer->stream.failed)
			sample_writer_record(writer->samples, record);
		bytes += record->bytes;
		ring_release(ring);
	}
	return bytes * FILL_WHOLE / ring->capacity;
}

/* Returns how full the fullest one was. */
static size_t drain_rings(struct writer *writer)
{
	struct sampler *sampler;
	size_t fullest = 0;

	if (writer->options.names)
		perf_names_drain(writer->options.names);
	for (size_t i = 0; (sampler = source_at(writer, i)) != NULL; i++) {
		size_t fill = drain_ring(writer, sampler_ring(sampler));

		if (fill > fullest)
			fullest = fill;
	}
	return fullest;
}

/* ---- objects that are loaded later ---------------------------------------- */

static uint64_t look_interval_ns(struct writer *writer)
{
	uint64_t interval_ns = LOOK_INTERVAL_NS;

	writer->rule_missing |= sample_writer_rule_was_missing(writer->samples);
	if (writer->rule_missing)
		interval_ns = LOOK_INTERVAL_NS_MIN;

	if (interval_ns < LOOK_COST_FACTOR * writer->look_cost_ns)
		interval_ns = LOOK_COST_FACTOR * writer->look_cost_ns;
	return interval_ns < LOOK_INTERVAL_NS_MAX ? interval_ns
	                                          : LOOK_INTERVAL_NS_MAX;
}

/* On failure the rules that there are stay in force. */
static void look_at_objects(struct writer *writer)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t cpu_ns;

	if (writer->looked_ns != 0 &&
	    now_ns - writer->looked_ns < look_interval_ns(writer))
		return;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unwind_tables_refresh(0, UNWIND_NO_BUDGET, NULL);
	if (!writer->stream.failed)
		object_writer_update(&writer->objects, &writer->stream.encoder);
	writer->look_cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	writer->looked_ns = now_ns;
	writer->rule_missing = false;
}

/* ---- the stream from head to end ----------------------------------------- */

/* Of a dump that has no file. */
static size_t write_nowhere(const void **data, size_t bytes, void *context)
{
	(void)data;
	(void)context;
	return bytes;
}

static void open_encoder(struct writer *writer)
{
	if (writer->rotation.is_interrupted) {
		sysprof_encoder_open(&writer->stream.encoder, writer->buffer,
		                     FILE_BUFFER_BYTES, write_nowhere, NULL);
		return;
	}
	if (!writer->has_file) {
		sysprof_encoder_open(&writer->stream.encoder, writer->buffer,
		                     writer->options.buffer_bytes,
		                     write_to_callback, writer);
		return;
	}
	dump_file_empty(&writer->file);
	sysprof_encoder_open(&writer->stream.encoder, writer->buffer,
	                     FILE_BUFFER_BYTES, dump_file_write, &writer->file);
}

static void begin_dump(struct writer *writer)
{
	struct session_facts facts = {
		.pid = (uint64_t)getpid(),
		.mode = writer->options.mode,
		.interval_ns = writer->options.interval_ns,
		.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC),
		.start_realtime_ns = clock_ns(CLOCK_REALTIME),
		.clock = writer->options.clock_name,
		.vm = writer->options.vm_description,
		.writer = PACKAGE_STRING,
	};

	writer->stream.failed = false;
	memset(writer->stream.lost, 0, sizeof(writer->stream.lost));
	writer->is_begun = false;
	writer->flushed_samples = 0;
	memset(writer->flushed_lost, 0, sizeof(writer->flushed_lost));
	open_encoder(writer);
	sysprof_write_prologue(&writer->stream.encoder);
	sysprof_write_session(&writer->stream.encoder, &facts);
	sample_writer_begin_dump(writer->samples, &writer->fast_names);
	object_writer_close(&writer->objects);
	object_writer_update(&writer->objects, &writer->stream.encoder);
	flush_all(writer);
	if (!writer->stream.failed && !writer->rotation.is_interrupted)
		atomic_fetch_add(&writer->dump_count, 1);
}

/* A dump tells of its own losses. */
static uint64_t write_lost(struct writer *writer)
{
	struct sampler_counters counters;

	read_counters(writer, &counters);
	counters.lost[LOST_UNWRITTEN] = atomic_load(&writer->unwritten_count);
	for (int reason = 0; reason < LOST_COUNT; reason++)
		counters.lost[reason] -= writer->lost_before[reason];
	return dump_stream_write_lost(&writer->stream, counters.lost,
	                              LOST_COUNT);
}

static void end_dump(struct writer *writer)
{
	uint64_t lost;

	if (!writer->stream.failed) {
		lost = write_lost(writer);
		sysprof_write_session_end(
			&writer->stream.encoder, clock_ns(CLOCK_MONOTONIC),
			sample_writer_count(writer->samples), lost);
		sysprof_write_end(&writer->stream.encoder);
	}
	flush_all(writer);
}

static void flush_if_due(struct writer *writer)
{
	if (!dump_stream_flush_is_due(&writer->stream))
		return;
	if (!writer->stream.failed)
		write_lost(writer);
	flush_all(writer);
}

/* ---- the next dump ---------------------------------------------------------- */

static void add_to_lost_before(struct writer *writer, const uint64_t *lost)
{
	for (int reason = 0; reason < LOST_COUNT; reason++)
		writer->lost_before[reason] += lost[reason];
}

static void close_file(struct writer *writer)
{
	struct error error;

	/* What close(2) can say concerns bytes that others had cached. */
	dump_file_close(&writer->file, &error);
}

/* False: the last bytes of it could not be written. */
static bool close_dump(struct writer *writer)
{
	end_dump(writer);
	if (writer->stream.failed)
		return false;
	add_to_lost_before(writer, writer->stream.lost);
	rotation_keep(&writer->rotation, &writer->file);
	close_file(writer);
	return true;
}

static void begin_next_dump(struct writer *writer)
{
	begin_dump(writer);
	if (writer->options.sources.begin_dump)
		writer->options.sources.begin_dump(
			writer->options.sources.context);
	tell_intervals(writer);
}

static void count_unwritten(struct writer *writer)
{
	atomic_fetch_add(&writer->unwritten_count,
	                 sample_writer_count(writer->samples) -
	                         writer->flushed_samples);
}

/* From here on samples go nowhere, and are counted, until a next dump can be written.
 * What the last one has is kept; its file stays known, for the error at the end. */
static void interrupt(struct writer *writer)
{
	count_unwritten(writer);
	add_to_lost_before(writer, writer->flushed_lost);
	if (writer->is_begun)
		rotation_keep(&writer->rotation, &writer->file);
	else
		dump_file_remove(&writer->file);
	close_file(writer);
	rotation_interrupt(&writer->rotation);
	begin_next_dump(writer);
}

static void interrupt_if_failed(struct writer *writer)
{
	if (rotates(writer) && writer->stream.failed)
		interrupt(writer);
}

/* Between two records of the rings: each sample is in one dump. Where the next
 * file cannot be opened this one goes on. */
static void rotate(struct writer *writer)
{
	bool was_interrupted = writer->rotation.is_interrupted;

	if (rotation_next_file(&writer->rotation, &writer->next_file, NULL) < 0)
		return;
	if (was_interrupted) {
		count_unwritten(writer);
	} else if (!close_dump(writer)) {
		dump_file_discard(&writer->next_file);
		return;
	}
	dump_file_free(&writer->file);
	writer->file = writer->next_file;
	writer->next_file = (struct dump_file){.fd = -1};
	begin_next_dump(writer);
}

static void rotate_if_due(struct writer *writer)
{
	uint64_t dump_bytes =
		writer->file.written_bytes + writer->stream.encoder.out.used;

	if (!rotates(writer))
		return;
	if (rotation_is_due(&writer->rotation, dump_bytes))
		rotate(writer);
	atomic_fetch_add(&writer->removed_count,
	                 rotation_trim(&writer->rotation,
	                               writer->rotation.is_interrupted
	                                       ? 0
	                                       : writer->file.written_bytes));
}

/* ---- the thread ---------------------------------------------------------- */

static void set_state(struct writer *writer, enum writer_state state)
{
	pthread_mutex_lock(&writer->lock);
	writer->state = state;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

/* False: it is time to end. A flush that was asked for ends the sleep, too. */
static bool sleep_until_stop(struct writer *writer, uint64_t sleep_ns)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + sleep_ns;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};
	int result = 0;
	bool running;

	pthread_mutex_lock(&writer->lock);
	while (writer->state == WRITER_RUNNING && !writer->flush_wanted &&
	       result == 0)
		result = pthread_cond_timedwait(&writer->changed, &writer->lock,
		                                &until);
	running = writer->state == WRITER_RUNNING;
	pthread_mutex_unlock(&writer->lock);
	return running;
}

/* Sleeps long where little comes, and never so long that the ring could fill
 * up: an eighth of it is the most that should wait. */
static uint64_t next_sleep(uint64_t sleep_ns, size_t fill)
{
	if (fill > FILL_WHOLE / 8)
		return sleep_ns / 4 > SLEEP_NS_MIN ? sleep_ns / 4
		                                   : SLEEP_NS_MIN;
	if (fill < FILL_WHOLE / 32 && sleep_ns < SLEEP_NS_MAX)
		return 2 * sleep_ns < SLEEP_NS_MAX ? 2 * sleep_ns
		                                   : SLEEP_NS_MAX;
	return sleep_ns;
}

static void flush_if_wanted(struct writer *writer)
{
	bool wanted;

	pthread_mutex_lock(&writer->lock);
	wanted = writer->flush_wanted;
	pthread_mutex_unlock(&writer->lock);
	if (!wanted)
		return;
	flush_all(writer);
	pthread_mutex_lock(&writer->lock);
	writer->flush_wanted = false;
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

static void *run_writer(void *argument)
{
	struct writer *writer = argument;
	uint64_t sleep_ns = SLEEP_NS_MIN;

	pthread_setname_np(pthread_self(), "sysprof-writer");
	sample_writer_map_names(writer->samples, &writer->fast_names);
	begin_dump(writer);
	writer->is_refused = writer->stream.failed;
	set_state(writer, WRITER_RUNNING);
	if (writer->is_refused)
		return NULL;
	while (sleep_until_stop(writer, sleep_ns)) {
		sleep_ns = next_sleep(sleep_ns, drain_rings(writer));
		refresh_sources(writer);
		look_at_objects(writer);
		rotate_if_due(writer);
		flush_if_due(writer);
		flush_if_wanted(writer);
		interrupt_if_failed(writer);
	}
	drain_rings(writer);
	if (writer->rotation.is_interrupted)
		count_unwritten(writer);
	end_dump(writer);
	return NULL;
}

static int start_thread(struct writer *writer, struct error *error)
{
	if (own_thread_start(&writer->thread, run_writer, writer,
	                     "the profile's writer", error) < 0)
		return -1;
	pthread_mutex_lock(&writer->lock);
	while (writer->state == WRITER_STARTING)
		pthread_cond_wait(&writer->changed, &writer->lock);
	pthread_mutex_unlock(&writer->lock);
	return 0;
}

/* ---- opening and closing -------------------------------------------------- */

/* Of a stream to the callback that has failed. */
static int set_callback_error(const struct writer *writer, struct error *error)
{
	int code = writer->callback_errno;

	if (writer->stream.encoder.out.ended)
		return error_set(error, PROFILE_ERRIO, code,
		                 "the writer callback ended the stream: %s",
		                 strerror(code));
	return error_set(error, PROFILE_ERRIO, code,
	                 "the writer callback took less than it was given: %s",
	                 strerror(code));
}

static int open_file(struct writer *writer, struct error *error)
{
	void *buffer = mmap(NULL, FILE_BUFFER_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the buffer of the dump");
	writer->buffer = buffer;
	if (!rotates(writer))
		return dump_file_open(&writer->file, writer->options.path,
		                      writer->options.fd, error);
	rotation_open(&writer->rotation, &writer->options.rotation,
	              writer->options.path);
	return rotation_next_file(&writer->rotation, &writer->file, error);
}

static int open_parts(struct writer *writer, struct error *error)
{
	struct sample_writer_options options = {
		.encoder = &writer->stream.encoder,
		.host_frames = writer->options.mode == LUAM_SYSPROF_CALLGRAPH,
		.names = writer->options.names,
		.fast_address = writer->options.fast_address,
		.marker_address = writer->options.marker_address,
		.keeps_names = rotates(writer),
	};

	writer->samples = sample_writer_open(&options, error);
	if (!writer->samples)
		return -1;
	if (writer->has_file)
		return open_file(writer, error);
	writer->buffer = writer->options.buffer;
	return 0;
}

static void free_writer(struct writer *writer)
{
	if (writer->has_file && writer->buffer)
		munmap(writer->buffer, FILE_BUFFER_BYTES);
	dump_file_free(&writer->file);
	dump_file_free(&writer->next_file);
	sample_writer_close(writer->samples);
	object_writer_close(&writer->objects);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static struct writer *new_writer(const struct writer_options *options)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	pthread_condattr_t attributes;

	if (!writer)
		return NULL;
	writer->options = *options;
	writer->fast_names = *options->fast_names;
	writer->has_file = options->path != NULL;
	writer->file.fd = writer->next_file.fd = -1;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&writer->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return writer;
}

/* Stops, and tells why the stream has failed. */
static int close_stream(struct writer *writer, struct error *error)
{
	writer_stop(writer);
	if (writer->has_file)
		return dump_file_close(&writer->file, error);
	return writer->stream.failed ? set_callback_error(writer, error) : 0;
}

struct writer *writer_open(const struct writer_options *options,
                           struct error *error)
{
	struct writer *writer = new_writer(options);

	if (!writer) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the profile's writer");
		return NULL;
	}
	if (open_parts(writer, error) < 0 || start_thread(writer, error) < 0) {
		dump_file_discard(&writer->file);
		free_writer(writer);
		return NULL;
	}
	if (writer->is_refused) {
		close_stream(writer, error);
		writer_discard(writer);
		return NULL;
	}
	return writer;
}

void writer_read_facts(const struct writer *writer, struct writer_facts *facts)
{
	*facts = (struct writer_facts){
		.held_bytes = atomic_load(&writer->held_bytes),
		.dump_count = atomic_load(&writer->dump_count),
		.removed_count = atomic_load(&writer->removed_count),
		.unwritten_count = atomic_load(&writer->unwritten_count),
	};
}

void writer_stop(struct writer *writer)
{
	if (writer->is_joined)
		return;
	set_state(writer, WRITER_STOPPING);
	pthread_join(writer->thread, NULL);
	writer->is_joined = true;
}

int writer_close(struct writer *writer, struct error *error)
{
	int result = close_stream(writer, error);

	free_writer(writer);
	return result;
}

void writer_discard(struct writer *writer)
{
	writer_stop(writer);
	dump_file_discard(&writer->file);
	free_writer(writer);
}

void writer_flush(struct writer *writer)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + FLUSH_WAIT_NS;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};
	int result = 0;

	pthread_mutex_lock(&writer->lock);
	writer->flush_wanted = true;
	pthread_cond_broadcast(&writer->changed);
	while (writer->flush_wanted && result == 0)
		result = pthread_cond_timedwait(&writer->changed, &writer->lock,
		                                &until);
	pthread_mutex_unlock(&writer->lock);
}

pthread_t writer_thread(const struct writer *writer)
{
	return writer->thread;
}

void writer_abandon(struct writer *writer)
{
	dump_file_abandon(&writer->file);
	dump_file_abandon(&writer->next_file);
}
