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
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "function_names.h"
#include "labels_sig.h"
#include "object_writer.h"
#include "sample.h"
#include "host/host_symbols.h"
#include "host/unwind_table.h"
#include "stream/call_tree.h"
#include "stream/frame_name.h"
#include "stream/sysprof_write.h"

#define FILE_BUFFER_BYTES   (256u << 10)
#define FLUSH_INTERVAL_NS   UINT64_C(500000000)
#define FLUSH_WAIT_NS       UINT64_C(200000000)
#define SLEEP_NS_MIN        UINT64_C(1000000)
#define SLEEP_NS_MAX        UINT64_C(100000000)
#define REFRESH_INTERVAL_NS UINT64_C(50000000) /* of the sources */
#define RANGE_BYTES         16 /* of a library function, of a marker */
#define NAME_BYTES          256
#define FILL_WHOLE          1024 /* a ring without room */

/* How often the loaded objects are looked at: more often if a sample met code
 * without unwind rules, less often where a look takes long. */
#define LOOK_INTERVAL_NS     UINT64_C(500000000)
#define LOOK_INTERVAL_NS_MIN UINT64_C(100000000)
#define LOOK_INTERVAL_NS_MAX UINT64_C(1000000000)
#define LOOK_COST_FACTOR     50

/* Addresses whose symbol is in the stream. A slot that is taken over only
 * costs a repeated record. */
#define SEEN_SLOTS (1u << 15)

struct seen_addresses {
	uint64_t slots[SEEN_SLOTS]; /* address, 0: free */
};

/* Coroutines whose label was said last, by address. */
#define LABEL_SLOTS 4096

struct said_label {
	uint64_t coroutine;
	uint32_t label;
};

/* What the samples refer to by Lua symbol id. */
struct lua_symbol_entry {
	uint64_t prototype;
	uint32_t first_line;
};

enum writer_state {
	WRITER_STARTING,
	WRITER_RUNNING,
	WRITER_STOPPING, /* asked to end */
};

struct writer {
	struct writer_options options;
	char *path;   /* our copy of options.path */
	int fd;       /* -1: the callback takes the stream */
	dev_t device; /* of fd's file, which tells whether it still is ours */
	ino_t inode;
	uint8_t *buffer; /* options.buffer, or our own of FILE_BUFFER_BYTES */
	struct fast_names fast_names;

	pthread_t thread;
	pthread_mutex_t lock; /* guards state */
	pthread_cond_t changed;
	enum writer_state state;
	bool flush_wanted; /* guarded by lock */

	/* The thread's own, until it has ended. */
	bool stream_failed;
	int stream_errno;
	struct sysprof_encoder encoder;
	struct call_tree tree;
	struct function_names *function_names;
	struct host_symbols *host_symbols;
	struct object_writer objects;
	struct lua_symbol_entry *lua_symbols; /* by id */
	size_t lua_symbol_capacity;
	uint64_t lost[LOST_COUNT]; /* as last written */
	uint64_t flushed_ns;
	uint64_t refreshed_ns; /* the sources, last */
	bool rule_missing;     /* a sample met code without unwind rules */
	uint64_t looked_ns;    /* at the loaded objects, last; 0: never */
	uint64_t look_cost_ns; /* of that look */
	struct seen_addresses seen_functions; /* their start */
	struct seen_addresses seen_addresses;
	struct said_label labels[LABEL_SLOTS];
	bool has_labels; /* some were said: coroutines without one matter */
	struct guest_entry guest[SAMPLE_FRAMES_MAX];
	uint64_t host[SAMPLE_FRAMES_MAX];
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

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
		sysprof_write_interval(&writer->encoder, thread_id,
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

static void note_identity(struct writer *writer)
{
	struct stat status;

	if (fstat(writer->fd, &status) == 0) {
		writer->device = status.st_dev;
		writer->inode = status.st_ino;
	}
}

static bool is_our_file(const struct writer *writer, int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 &&
	       status.st_dev == writer->device &&
	       status.st_ino == writer->inode;
}

/* Daemons close all descriptors, and the number may be that of a file of the host
 * by now: not a byte may get there. The dump itself may still be at its place. */
static bool find_our_file(struct writer *writer)
{
	if (is_our_file(writer, writer->fd))
		return true;
	writer->fd = open(writer->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (is_our_file(writer, writer->fd))
		return true;
	if (writer->fd >= 0)
		close(writer->fd);
	writer->fd = -1;
	return false;
}

/* A file may be a pipe or a terminal that was made non-blocking. */
static ssize_t write_some(int fd, const uint8_t *bytes, size_t count)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	ssize_t written;

	for (;;) {
		written = write(fd, bytes, count);
		if (written >= 0)
			return written;
		if (errno == EAGAIN)
			poll(&ready, 1, -1);
		else if (errno != EINTR)
			return -1;
	}
}

static size_t write_to_file(const void **data, size_t bytes, void *context)
{
	struct writer *writer = context;
	size_t done = 0;

	if (!find_our_file(writer)) {
		writer->stream_errno = EBADF;
		*data = NULL;
		return 0;
	}
	while (done < bytes) {
		ssize_t written =
			write_some(writer->fd, (const uint8_t *)*data + done,
		                   bytes - done);

		if (written <= 0) {
			writer->stream_errno = written < 0 ? errno : ENOSPC;
			*data = NULL;
			break;
		}
		done += (size_t)written;
	}
	return done;
}

static size_t write_to_callback(const void **data, size_t bytes, void *context)
{
	struct writer *writer = context;
	size_t taken;

	errno = 0;
	taken = writer->options.callback(data, bytes, writer->options.context);
	if (taken < bytes || !*data)
		writer->stream_errno = errno != 0 ? errno : EIO;
	return taken;
}

/* Flushes stream and map file together, so that what perf sees is never far
 * behind. Once the stream has failed nothing more is sampled. */
static void flush_all(struct writer *writer)
{
	writer->flushed_ns = clock_ns(CLOCK_MONOTONIC);
	if (writer->options.names)
		perf_names_flush(writer->options.names);
	if (writer->stream_failed || sysprof_encoder_flush(&writer->encoder))
		return;
	writer->stream_failed = true;
	disable_sources(writer);
}

/* ---- symbols ------------------------------------------------------------- */

/* True if the address was there already. */
static bool seen_before(struct seen_addresses *seen, uint64_t address)
{
	uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t *slot = &seen->slots[hash >> 49];

	if (*slot == address)
		return true;
	*slot = address;
	return false;
}

_Static_assert(SEEN_SLOTS == 1u << (64 - 49), "a hash is an index");

static void write_native_symbol(struct writer *writer, uint64_t address)
{
	struct host_symbol symbol;

	if (address == 0 || seen_before(&writer->seen_addresses, address))
		return;
	host_symbols_find(writer->host_symbols, address, &symbol);
	if (seen_before(&writer->seen_functions, symbol.start))
		return;
	sysprof_write_c_symbol(&writer->encoder, symbol.start, symbol.name);
}

static void map_name(struct writer *writer, uint64_t address, uint64_t bytes,
                     const char *name, size_t name_bytes)
{
	if (writer->options.names && address != 0)
		perf_names_add_range(writer->options.names, address, bytes,
		                     name, name_bytes, NULL, 0);
}

static void map_lua_symbol(struct writer *writer,
                           const struct lua_symbol *symbol,
                           const char *function, size_t function_bytes)
{
	char name[FRAME_NAME_BYTES], file[FRAME_NAME_BYTES];
	size_t bytes;

	if (!writer->options.names || symbol->arena_address == 0)
		return;
	bytes = frame_name_lua(name, symbol->chunk, symbol->chunk_bytes,
	                       symbol->first_line, function, function_bytes);
	frame_name_source(file, symbol->chunk, symbol->chunk_bytes);
	perf_names_add_range(writer->options.names, symbol->arena_address,
	                     (uint64_t)symbol->line_count + 2, name, bytes,
	                     file, symbol->first_line);
}

/* False: out of memory, the symbol has no entry then. */
static bool remember_lua_symbol(struct writer *writer,
                                const struct lua_symbol *symbol)
{
	size_t capacity = writer->lua_symbol_capacity;
	struct lua_symbol_entry *grown;

	while (capacity <= symbol->id)
		capacity = capacity > 0 ? 2 * capacity : 1024;
	if (capacity > writer->lua_symbol_capacity) {
		grown = realloc(writer->lua_symbols, capacity * sizeof(*grown));
		if (!grown)
			return false;
		memset(grown + writer->lua_symbol_capacity, 0,
		       (capacity - writer->lua_symbol_capacity) *
		               sizeof(*grown));
		writer->lua_symbols = grown;
		writer->lua_symbol_capacity = capacity;
	}
	writer->lua_symbols[symbol->id] = (struct lua_symbol_entry){
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
	};
	return true;
}

/* Prototype 0 where the id has no entry. */
static struct lua_symbol_entry find_lua_symbol(const struct writer *writer,
                                               uint64_t id)
{
	if (id < writer->lua_symbol_capacity)
		return writer->lua_symbols[id];
	return (struct lua_symbol_entry){0};
}

static void write_lua_symbol(struct writer *writer,
                             const struct lua_symbol *symbol)
{
	char function[NAME_BYTES];
	size_t function_bytes = function_names_find(
		writer->function_names, symbol->chunk, symbol->chunk_bytes,
		symbol->first_line, function, sizeof(function));
	struct lua_symbol_facts facts = {
		.id = symbol->id,
		.prototype = symbol->prototype,
		.first_line = symbol->first_line,
		.line_count = symbol->line_count,
		.chunk = symbol->chunk,
		.chunk_bytes = symbol->chunk_bytes,
		.function = function,
	};

	if (!remember_lua_symbol(writer, symbol))
		return;
	sysprof_write_proto(&writer->encoder, symbol->prototype, symbol->chunk,
	                    symbol->chunk_bytes, symbol->first_line);
	sysprof_write_lua_symbol(&writer->encoder, &facts);
	map_lua_symbol(writer, symbol, function, function_bytes);
}

static void write_trace_symbol(struct writer *writer,
                               const struct trace_symbol *trace)
{
	struct lua_symbol_entry symbol =
		find_lua_symbol(writer, trace->lua_symbol);

	sysprof_write_trace(&writer->encoder, trace->trace_number,
	                    symbol.prototype, trace->start_line);
	sysprof_write_trace_code(&writer->encoder, trace->trace_number,
	                         trace->code, trace->code_bytes);
}

/* Library functions and markers are few: all are named at the start. */
static void write_fast_symbols(struct writer *writer)
{
	const struct fast_names *names = &writer->fast_names;
	char safe[FRAME_NAME_BYTES];

	for (uint32_t i = 0; i < names->count && i < FAST_FUNCTIONS_MAX; i++) {
		const char *name = names->name[i];
		size_t bytes;

		if (!name[0])
			continue;
		sysprof_write_fast_symbol(&writer->encoder, i, name);
		bytes = frame_name_native(safe, name, strlen(name));
		map_name(writer, writer->options.fast_address + i * RANGE_BYTES,
		         RANGE_BYTES, safe, bytes);
	}
}

static void map_markers(struct writer *writer)
{
	char name[FRAME_NAME_BYTES];

	for (uint32_t i = 1; i < MARKER_COUNT; i++) {
		size_t bytes = frame_marker_name(name, i, 0);

		map_name(writer,
		         writer->options.marker_address + i * RANGE_BYTES,
		         RANGE_BYTES, name, bytes);
	}
}

/* ---- samples ------------------------------------------------------------- */

static bool writes_host_frames(const struct writer *writer)
{
	return writer->options.mode == LUAM_SYSPROF_CALLGRAPH;
}

/* Names precede the sample that needs them. */
static void write_native_symbols(struct writer *writer,
                                 const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];

		if (frame->kind == FRAME_HOST || frame->kind == FRAME_C)
			write_native_symbol(writer, frame->value);
	}
}

static uint32_t write_stack(struct writer *writer, const struct sample *sample)
{
	uint32_t node = 0;

	if (!call_tree_make_room(&writer->tree, &writer->encoder,
	                         sample->frame_count))
		return 0;
	for (size_t i = sample->frame_count; i-- > 0;) {
		const struct frame *frame = &sample->frames[i];
		struct stack_node entry = {
			.value = frame->value,
			.line = frame->line,
			.kind = frame->kind,
			.flags = frame->flags,
		};

		node = sysprof_write_frame(&writer->encoder, &writer->tree,
		                           node, &entry);
	}
	return node;
}

/* Says which label the samples of the coroutine have from here on, unless that
 * was the last thing said. What the slot was taken from is said again then. */
static void write_label(struct writer *writer, const struct sample *sample)
{
	struct said_label *said =
		&writer->labels[(sample->coroutine >> 4) % LABEL_SLOTS];
	bool is_news = said->coroutine != sample->coroutine
	                       ? sample->label || writer->has_labels
	                       : said->label != sample->label;

	*said = (struct said_label){sample->coroutine, sample->label};
	if (!is_news)
		return;
	writer->has_labels = true;
	sysprof_write_label(&writer->encoder, sample->coroutine,
	                    labels_text(sample->label));
}

static void write_sample_facts(struct writer *writer,
                               const struct sample *sample)
{
	struct sample_facts facts = {
		.time_ns = sample->time_ns,
		.thread_id = sample->thread_id,
		.vm_number = sample->vm_number,
		.coroutine = sample->coroutine,
		.leaf_node = write_stack(writer, sample),
	};

	sysprof_write_sample_facts(&writer->encoder, &facts);
}

/* False for frames that have no place in the guest part. */
static bool guest_entry_of(const struct writer *writer,
                           const struct frame *frame, struct guest_entry *entry)
{
	struct lua_symbol_entry symbol;

	*entry = (struct guest_entry){.value = frame->value};
	switch (frame->kind) {
	case FRAME_LUA:
		symbol = find_lua_symbol(writer, frame->value);
		entry->type = GUEST_LUA;
		entry->value = symbol.prototype;
		entry->first_line = symbol.first_line;
		return true;
	case FRAME_C:
		entry->type = GUEST_C;
		return true;
	case FRAME_FAST:
		entry->type = GUEST_FAST;
		return true;
	default:
		return false;
	}
}

static void write_stack_sample(struct writer *writer,
                               const struct sample *sample)
{
	size_t guest_count = 0;
	size_t host_count = 0;

	for (size_t i = 0; i < sample->frame_count && i < SAMPLE_FRAMES_MAX;
	     i++) {
		const struct frame *frame = &sample->frames[i];

		if (guest_entry_of(writer, frame, &writer->guest[guest_count]))
			guest_count++;
		else if (frame->kind == FRAME_HOST &&
		         writes_host_frames(writer))
			writer->host[host_count++] = frame->value;
	}
	sysprof_write_sample(&writer->encoder, (enum sample_state)sample->state,
	                     writer->guest, guest_count, writer->host,
	                     host_count);
}

static void note_missing_rule(struct writer *writer,
                              const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].kind == FRAME_MARKER &&
		    sample->frames[i].value == MARKER_HOST_NO_TABLE)
			writer->rule_missing = true;
}

static void write_sample(struct writer *writer, const struct sample *sample)
{
	struct lua_symbol_entry symbol;

	note_missing_rule(writer, sample);
	write_native_symbols(writer, sample);
	write_label(writer, sample);
	write_sample_facts(writer, sample);
	if (sample->state != STATE_TRACE) {
		write_stack_sample(writer, sample);
		return;
	}
	symbol = find_lua_symbol(writer, sample->trace_symbol);
	sysprof_write_trace_sample(&writer->encoder, sample->trace_number,
	                           symbol.prototype, symbol.first_line);
}

static void write_record(struct writer *writer,
                         const struct ring_record *record)
{
	switch (record->kind) {
	case RING_SAMPLE:
		write_sample(writer, (const void *)record);
		break;
	case RING_LUA_SYMBOL:
		write_lua_symbol(writer, (const void *)record);
		break;
	case RING_TRACE_SYMBOL:
		write_trace_symbol(writer, (const void *)record);
		break;
	}
}

/* A full disk must not let the ring fill up: it is emptied all the same. Returns
 * how full it was, of FILL_WHOLE. */
static size_t drain_ring(struct writer *writer, struct ring *ring)
{
	const struct ring_record *record;
	size_t bytes = 0;

	while ((record = ring_peek(ring)) != NULL) {
		if (!writer->stream_failed)
			write_record(writer, record);
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

static uint64_t look_interval_ns(const struct writer *writer)
{
	uint64_t interval_ns =
		writer->rule_missing ? LOOK_INTERVAL_NS_MIN : LOOK_INTERVAL_NS;

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
	if (!writer->stream_failed)
		object_writer_update(&writer->objects, &writer->encoder);
	writer->look_cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	writer->looked_ns = now_ns;
	writer->rule_missing = false;
}

/* ---- the stream from head to end ----------------------------------------- */

static void write_head(struct writer *writer)
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

	/* Of a pipe or a device there is nothing to cut off. */
	if (writer->fd >= 0 && ftruncate(writer->fd, 0) < 0)
		errno = 0;
	sysprof_encoder_open(
		&writer->encoder, writer->buffer,
		writer->fd >= 0 ? FILE_BUFFER_BYTES
				: writer->options.buffer_bytes,
		writer->fd >= 0 ? write_to_file : write_to_callback, writer);
	sysprof_write_prologue(&writer->encoder);
	sysprof_write_session(&writer->encoder, &facts);
	write_fast_symbols(writer);
	object_writer_update(&writer->objects, &writer->encoder);
	if (writer->options.names)
		map_markers(writer);
	flush_all(writer);
}

static void write_lost(struct writer *writer,
                       const struct sampler_counters *counters)
{
	for (int reason = 1; reason < LOST_COUNT; reason++) {
		if (counters->lost[reason] == writer->lost[reason])
			continue;
		writer->lost[reason] = counters->lost[reason];
		sysprof_write_lost(&writer->encoder, (enum lost_reason)reason,
		                   counters->lost[reason]);
	}
}

static void flush_if_due(struct writer *writer)
{
	struct sampler_counters counters;

	if (!writer->stream_failed &&
	    !sysprof_encoder_is_open(&writer->encoder))
		flush_all(writer);
	if (clock_ns(CLOCK_MONOTONIC) - writer->flushed_ns < FLUSH_INTERVAL_NS)
		return;
	if (!writer->stream_failed) {
		read_counters(writer, &counters);
		write_lost(writer, &counters);
	}
	flush_all(writer);
}

static void write_tail(struct writer *writer)
{
	struct sampler_counters counters;
	uint64_t lost = 0;

	drain_rings(writer);
	read_counters(writer, &counters);
	for (int reason = 1; reason < LOST_COUNT; reason++)
		lost += counters.lost[reason];
	if (!writer->stream_failed) {
		write_lost(writer, &counters);
		sysprof_write_session_end(&writer->encoder,
		                          clock_ns(CLOCK_MONOTONIC),
		                          counters.samples, lost);
		sysprof_write_end(&writer->encoder);
	}
	flush_all(writer);
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
	write_head(writer);
	set_state(writer, WRITER_RUNNING);
	while (sleep_until_stop(writer, sleep_ns)) {
		sleep_ns = next_sleep(sleep_ns, drain_rings(writer));
		refresh_sources(writer);
		look_at_objects(writer);
		flush_if_due(writer);
		flush_if_wanted(writer);
	}
	write_tail(writer);
	return NULL;
}

/* Faults stay open: the host's crash handler shall see those of a callback. */
static void block_signals(sigset_t *before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	sigset_t all;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_BLOCK, &all, before);
}

static int start_thread(struct writer *writer, struct error *error)
{
	sigset_t before;
	int code;

	block_signals(&before);
	code = pthread_create(&writer->thread, NULL, run_writer, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code != 0)
		return error_set(error, PROFILE_ERRMEM, code,
		                 "no thread for the profile's writer: %s",
		                 strerror(code));
	pthread_mutex_lock(&writer->lock);
	while (writer->state == WRITER_STARTING)
		pthread_cond_wait(&writer->changed, &writer->lock);
	pthread_mutex_unlock(&writer->lock);
	return 0;
}

/* ---- opening and closing -------------------------------------------------- */

static int set_stream_error(const struct writer *writer, struct error *error)
{
	int code = writer->stream_errno;

	if (writer->path)
		return error_set(error, PROFILE_ERRIO, code, "%s: %s",
		                 writer->path, strerror(code));
	if (writer->encoder.out.ended)
		return error_set(error, PROFILE_ERRIO, code,
		                 "the writer callback ended the stream: %s",
		                 strerror(code));
	return error_set(error, PROFILE_ERRIO, code,
	                 "the writer callback took less than it was given: %s",
	                 strerror(code));
}

static int open_file(struct writer *writer, struct error *error)
{
	void *buffer;

	writer->path = strdup(writer->options.path);
	writer->options.path = writer->path;
	buffer = mmap(NULL, FILE_BUFFER_BYTES, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer != MAP_FAILED)
		writer->buffer = buffer;
	if (!writer->path || !writer->buffer)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the buffer of the dump");
	writer->fd = open(writer->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (writer->fd < 0)
		return error_set(error, PROFILE_ERRIO, errno, "%s: %s",
		                 writer->path, strerror(errno));
	note_identity(writer);
	return 0;
}

static int open_parts(struct writer *writer, struct error *error)
{
	if (!call_tree_open(&writer->tree, CALL_TREE_NODES_DEFAULT))
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the call tree");
	writer->function_names = function_names_open();
	if (!writer->function_names)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the names of functions");
	writer->host_symbols = host_symbols_open(error);
	if (!writer->host_symbols)
		return -1;
	if (writer->options.path)
		return open_file(writer, error);
	writer->buffer = writer->options.buffer;
	return 0;
}

static int close_file(struct writer *writer)
{
	int fd = writer->fd;

	writer->fd = -1;
	if (!is_our_file(writer, fd))
		return 0;
	/* Linux closes the descriptor in any case: EINTR is no failure. */
	if (fd >= 0 && close(fd) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static void free_writer(struct writer *writer)
{
	close_file(writer);
	if (writer->options.path && writer->buffer)
		munmap(writer->buffer, FILE_BUFFER_BYTES);
	host_symbols_close(writer->host_symbols);
	object_writer_close(&writer->objects);
	function_names_close(writer->function_names);
	call_tree_close(&writer->tree);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	free(writer->lua_symbols);
	free(writer->path);
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
	writer->fd = -1;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&writer->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return writer;
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
		free_writer(writer);
		return NULL;
	}
	if (writer->stream_failed) {
		writer_close(writer, error);
		return NULL;
	}
	return writer;
}

int writer_close(struct writer *writer, struct error *error)
{
	int result = 0;
	int code;

	set_state(writer, WRITER_STOPPING);
	pthread_join(writer->thread, NULL);
	code = close_file(writer);
	if (writer->stream_failed)
		result = set_stream_error(writer, error);
	else if (code < 0)
		result = error_set(error, PROFILE_ERRIO, -code, "%s: %s",
		                   writer->path, strerror(-code));
	free_writer(writer);
	return result;
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
	close_file(writer);
}
