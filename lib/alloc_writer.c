// SPDX-License-Identifier: MIT
/*
 * Allocation writer; see alloc_writer.h. All but open and close runs on its own
 * thread.
 */
#include "alloc_writer.h"

#include <config.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "allocation.h"
#include "dump_stream.h"
#include "lmisclib.h"
#include "own_thread.h"
#include "host/unwind_table.h"
#include "stream/call_tree.h"
#include "stream/memprof_write.h"
#include "symbol_writer.h"

#define BUFFER_BYTES (256u << 10)
#define WAIT_NS      UINT64_C(100000000)

_Static_assert(MEMPROF_LOST_COUNT <= DUMP_STREAM_REASONS_MAX,
               "the stream counts all reasons");

struct alloc_writer {
	struct alloc_writer_options options;
	struct fast_names fast_names;

	pthread_t thread;
	pthread_mutex_t lock; /* guards the two below */
	pthread_cond_t changed;
	bool started; /* the head is written */
	bool stopping;

	/* The thread's own. */
	struct dump_stream stream;
	struct call_tree tree;
	struct symbol_writer *symbols;
	uint32_t leaf_node; /* of the next event, if has_stack */
	bool has_stack;
	uint8_t buffer[BUFFER_BYTES];
};

/* Once the stream has failed nothing more is recorded. */
static void flush(struct alloc_writer *writer)
{
	if (!dump_stream_flush(&writer->stream))
		alloc_recorder_disable(writer->options.recorder);
}

/* ---- records ----------------------------------------------------------------- */

static void write_stack(struct alloc_writer *writer,
                        const struct allocation_stack *stack)
{
	uint32_t node = 0;

	if (!call_tree_make_room(&writer->tree, &writer->stream.encoder,
	                         stack->frame_count))
		return;
	for (size_t i = stack->frame_count; i-- > 0;) {
		const struct frame *frame = &stack->frames[i];
		struct stack_node entry = {
			.value = frame->value,
			.line = frame->line,
			.kind = frame->kind,
			.flags = frame->flags,
		};

		if (frame->kind == FRAME_C)
			symbol_writer_native(writer->symbols, frame->value);
		node = sysprof_write_frame(&writer->stream.encoder,
		                           &writer->tree, node, &entry);
	}
	writer->leaf_node = node;
	writer->has_stack = true;
}

static void write_event(struct alloc_writer *writer,
                        const struct allocation *allocation)
{
	const uint64_t *block = allocation->blocks;
	struct memprof_event_fields fields = {
		.event = (enum memprof_event)allocation->event,
		.source = (enum memprof_source)allocation->kind,
		.source_value = allocation->source,
		.line = allocation->line,
	};

	if (fields.event != MEMPROF_ALLOC) {
		fields.old_address = *block++;
		fields.old_bytes = *block++;
	}
	if (fields.event != MEMPROF_FREE) {
		fields.new_address = *block++;
		fields.new_bytes = *block++;
	}
	if (fields.source == MEMPROF_C)
		symbol_writer_native(writer->symbols, fields.source_value);
	if (writer->has_stack || allocation->flags)
		memprof_write_event_facts(&writer->stream.encoder,
		                          writer->has_stack ? writer->leaf_node
		                                            : 0,
		                          allocation->flags);
	writer->has_stack = false;
	memprof_write_event(&writer->stream.encoder, &fields);
}

static void write_context(struct alloc_writer *writer,
                          const struct allocation_context *record)
{
	struct memprof_context context = {
		.time_ns = record->time_ns,
		.coroutine = record->coroutine,
		.trace_number = record->trace_number,
	};

	memprof_write_context(&writer->stream.encoder, &context);
}

static void write_record(struct alloc_writer *writer,
                         const struct ring_record *record)
{
	char function[FUNCTION_NAME_BYTES];

	switch (record->kind) {
	case RING_ALLOCATION:
		write_event(writer, (const void *)record);
		break;
	case RING_ALLOCATION_CONTEXT:
		write_context(writer, (const void *)record);
		break;
	case RING_ALLOCATION_STACK:
		write_stack(writer, (const void *)record);
		break;
	case RING_LUA_SYMBOL:
		symbol_writer_lua(writer->symbols, (const void *)record,
		                  function);
		break;
	case RING_TRACE_SYMBOL:
		symbol_writer_trace(writer->symbols, (const void *)record);
		break;
	}
}

/* A full disk must not let the ring fill up: it is emptied all the same. */
static void drain_ring(struct alloc_writer *writer)
{
	struct ring *ring = alloc_recorder_ring(writer->options.recorder);
	const struct ring_record *record;

	while ((record = ring_peek(ring)) != NULL) {
		if (!writer->stream.failed)
			write_record(writer, record);
		ring_release(ring);
	}
}

/* ---- the stream from head to end --------------------------------------------- */

/* Opening the VM decodes only the rules that it needs; stacks need all, also of
 * objects that are loaded later. */
static void refresh_tables(const struct alloc_writer *writer)
{
	if (writer->options.stacks)
		unwind_tables_refresh(0, UNWIND_NO_BUDGET, NULL);
}

static void write_head(struct alloc_writer *writer)
{
	const struct alloc_writer_options *options = &writer->options;
	struct memprof_session_facts facts = {
		.pid = (uint64_t)getpid(),
		.vm_number = options->vm_number,
		.sample_bytes = options->sample_bytes,
		.stacks = options->stacks,
		.start_monotonic_ns = clock_ns(CLOCK_MONOTONIC),
		.start_realtime_ns = clock_ns(CLOCK_REALTIME),
		.vm = options->vm_description,
		.writer = PACKAGE_STRING,
	};

	refresh_tables(writer);
	dump_file_empty(options->file);
	memprof_encoder_open(&writer->stream.encoder, writer->buffer,
	                     BUFFER_BYTES, dump_file_write, options->file);
	sysprof_write_prologue(&writer->stream.encoder);
	memprof_write_session(&writer->stream.encoder, &facts);
	symbol_writer_fast(writer->symbols, &writer->fast_names);
	flush(writer);
}

static void flush_if_due(struct alloc_writer *writer)
{
	struct alloc_counters counters;

	if (!dump_stream_flush_is_due(&writer->stream))
		return;
	refresh_tables(writer);
	if (!writer->stream.failed) {
		alloc_recorder_read_counters(writer->options.recorder,
		                             &counters);
		dump_stream_write_lost(&writer->stream, counters.lost,
		                       MEMPROF_LOST_COUNT);
	}
	flush(writer);
}

static void write_tail(struct alloc_writer *writer)
{
	struct alloc_counters counters;
	uint64_t lost;

	drain_ring(writer);
	if (writer->stream.failed)
		return;
	alloc_recorder_read_counters(writer->options.recorder, &counters);
	lost = dump_stream_write_lost(&writer->stream, counters.lost,
	                              MEMPROF_LOST_COUNT);
	memprof_write_session_end(&writer->stream.encoder,
	                          clock_ns(CLOCK_MONOTONIC), counters.events,
	                          lost);
	sysprof_write_end(&writer->stream.encoder);
	flush(writer);
}

/* ---- the thread -------------------------------------------------------------- */

static bool is_stopping(struct alloc_writer *writer)
{
	bool stopping;

	pthread_mutex_lock(&writer->lock);
	stopping = writer->stopping;
	pthread_mutex_unlock(&writer->lock);
	return stopping;
}

static void *run_writer(void *argument)
{
	struct alloc_writer *writer = argument;

	pthread_setname_np(pthread_self(), "memprof-writer");
	write_head(writer);
	pthread_mutex_lock(&writer->lock);
	writer->started = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	while (!is_stopping(writer)) {
		alloc_recorder_wait(writer->options.recorder, WAIT_NS);
		drain_ring(writer);
		flush_if_due(writer);
	}
	write_tail(writer);
	return NULL;
}

static int start_thread(struct alloc_writer *writer, struct error *error)
{
	if (own_thread_start(&writer->thread, run_writer, writer,
	                     "the profile's writer", error) < 0)
		return -1;
	pthread_mutex_lock(&writer->lock);
	while (!writer->started)
		pthread_cond_wait(&writer->changed, &writer->lock);
	pthread_mutex_unlock(&writer->lock);
	return 0;
}

/* ---- opening and closing ----------------------------------------------------- */

static void free_writer(struct alloc_writer *writer)
{
	symbol_writer_close(writer->symbols);
	call_tree_close(&writer->tree);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static int open_parts(struct alloc_writer *writer, struct error *error)
{
	writer->symbols = symbol_writer_open(&writer->stream.encoder, error);
	if (!writer->symbols)
		return -1;
	if (writer->options.stacks &&
	    !call_tree_open(&writer->tree, CALL_TREE_NODES_DEFAULT))
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the call tree");
	return start_thread(writer, error);
}

struct alloc_writer *
alloc_writer_open(const struct alloc_writer_options *options,
                  struct error *error)
{
	struct alloc_writer *writer = calloc(1, sizeof(*writer));

	if (!writer) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the profile's writer");
		return NULL;
	}
	writer->options = *options;
	writer->fast_names = *options->fast_names;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	if (open_parts(writer, error) < 0) {
		free_writer(writer);
		return NULL;
	}
	return writer;
}

void alloc_writer_close(struct alloc_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	writer->stopping = true;
	pthread_mutex_unlock(&writer->lock);
	alloc_recorder_wake(writer->options.recorder);
	pthread_join(writer->thread, NULL);
	free_writer(writer);
}
