// SPDX-License-Identifier: MIT
/*
 * Encoder of a memprof dump; see memprof_write.h.
 * Runs on the writer thread. Never allocates.
 */
#include "memprof_write.h"

#include <string.h>

#include "extension_write.h"

/* Header, prototype or other source, line, two addresses with sizes. */
#define EVENT_BYTES_MAX (1 + 6 * NUMBER_BYTES_MAX)

static const struct stream_kind memprof_stream = {
	.magic = MEMPROF_MAGIC,
	.version = MEMPROF_VERSION,
	.new_proto = MEMPROF_NEW_PROTO,
	.new_c = MEMPROF_NEW_C,
	.new_trace = MEMPROF_NEW_TRACE,
	.end = MEMPROF_END,
};

void memprof_encoder_open(struct sysprof_encoder *encoder, uint8_t *buffer,
                          size_t capacity, byte_output_flusher flusher,
                          void *context)
{
	sysprof_encoder_open(encoder, buffer, capacity, flusher, context);
	encoder->kind = &memprof_stream;
}

static void put(struct sysprof_encoder *encoder, enum memprof_item kind,
                const struct extension_body *item)
{
	extension_put(encoder, (enum extension_item)kind, item);
}

void memprof_write_session(struct sysprof_encoder *encoder,
                           const struct memprof_session_facts *facts)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, EXTENSION_VERSION);
	extension_item_number(&item, facts->pid);
	extension_item_number(&item, facts->vm_number);
	extension_item_number(&item, facts->sample_bytes);
	extension_item_number(&item, facts->stacks);
	extension_item_number(&item, facts->start_monotonic_ns);
	extension_item_number(&item, facts->start_realtime_ns);
	extension_item_string(&item, facts->vm, strlen(facts->vm));
	extension_item_string(&item, facts->writer, strlen(facts->writer));
	encoder->last_time_ns = facts->start_monotonic_ns;
	put(encoder, ITEM_MEMPROF_SESSION, &item);
}

void memprof_write_context(struct sysprof_encoder *encoder,
                           const struct memprof_context *context)
{
	struct extension_body item;
	int64_t passed_ns = (int64_t)(context->time_ns - encoder->last_time_ns);

	item.used = 0;
	extension_item_number(&item, number_zigzag(passed_ns));
	extension_item_number(&item, context->coroutine);
	extension_item_number(&item, context->trace_number);
	encoder->last_time_ns = context->time_ns;
	put(encoder, ITEM_CONTEXT, &item);
}

void memprof_write_event_facts(struct sysprof_encoder *encoder,
                               uint32_t leaf_node, uint8_t flags)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, leaf_node);
	extension_item_number(&item, flags);
	put(encoder, ITEM_EVENT, &item);
}

void memprof_write_event(struct sysprof_encoder *encoder,
                         const struct memprof_event_fields *fields)
{
	uint8_t bytes[EVENT_BYTES_MAX];
	uint8_t *end = bytes;

	extension_flush(encoder);
	*end++ = (uint8_t)(fields->event | fields->source
	                                           << MEMPROF_SOURCE_SHIFT);
	if (fields->source != MEMPROF_INTERNAL)
		end += number_encode(end, fields->source_value);
	if (fields->source == MEMPROF_LUA)
		end += number_encode(end, wire_line(fields->line));
	if (fields->event != MEMPROF_ALLOC) {
		end += number_encode(end, fields->old_address);
		end += number_encode(end, fields->old_bytes);
	}
	if (fields->event != MEMPROF_FREE) {
		end += number_encode(end, fields->new_address);
		end += number_encode(end, fields->new_bytes);
	}
	byte_output_put_bytes(&encoder->out, bytes, (size_t)(end - bytes));
}

void memprof_write_session_end(struct sysprof_encoder *encoder,
                               uint64_t stop_monotonic_ns, uint64_t event_count,
                               uint64_t lost_count)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, stop_monotonic_ns);
	extension_item_number(&item, event_count);
	extension_item_number(&item, lost_count);
	put(encoder, ITEM_MEMPROF_END, &item);
}
