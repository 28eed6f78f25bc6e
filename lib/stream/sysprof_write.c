// SPDX-License-Identifier: MIT
/*
 * Encoder of a sysprof dump; see sysprof_write.h.
 * Runs on the writer thread. Never allocates.
 */
#include "sysprof_write.h"

#include <string.h>

#include "extension_write.h"

_Static_assert(EXTENSION_BODY_BYTES_MAX + 1 + NUMBER_BYTES_MAX <=
                       EXTENSION_BUFFER_BYTES,
               "every extension item fits the buffer");

static const struct stream_kind sysprof_stream = {
	.magic = SYSPROF_MAGIC,
	.version = SYSPROF_VERSION,
	.new_proto = SYSPROF_NEW_PROTO,
	.new_c = SYSPROF_NEW_C,
	.new_trace = SYSPROF_NEW_TRACE,
	.end = SYSPROF_END,
};

uint64_t wire_line(uint32_t line)
{
	return (uint64_t)(int64_t)(int32_t)line;
}

void sysprof_encoder_open(struct sysprof_encoder *encoder, uint8_t *buffer,
                          size_t capacity, byte_output_flusher flusher,
                          void *context)
{
	byte_output_open(&encoder->out, buffer, capacity, flusher, context);
	encoder->kind = &sysprof_stream;
	encoder->in_symtab = false;
	encoder->last_time_ns = 0;
	encoder->item_bytes = 0;
}

bool sysprof_encoder_is_open(const struct sysprof_encoder *encoder)
{
	return byte_output_is_open(&encoder->out);
}

void extension_flush(struct sysprof_encoder *encoder)
{
	if (encoder->item_bytes == 0)
		return;
	byte_output_put_byte(&encoder->out, encoder->kind->new_c);
	byte_output_put_number(&encoder->out, EXTENSION_ADDRESS);
	byte_output_put_string(&encoder->out, (const char *)encoder->items,
	                       encoder->item_bytes);
	encoder->item_bytes = 0;
}

bool sysprof_encoder_flush(struct sysprof_encoder *encoder)
{
	extension_flush(encoder);
	return byte_output_flush(&encoder->out);
}

/* ---- the known format -------------------------------------------------- */

static void put_header(struct sysprof_encoder *encoder, const char *magic,
                       uint8_t version)
{
	const uint8_t reserved[STREAM_HEADER_BYTES - STREAM_MAGIC_BYTES - 1] = {
		0};

	byte_output_put_bytes(&encoder->out, magic, STREAM_MAGIC_BYTES);
	byte_output_put_byte(&encoder->out, version);
	byte_output_put_bytes(&encoder->out, reserved, sizeof(reserved));
}

void sysprof_write_symtab_begin(struct sysprof_encoder *encoder)
{
	put_header(encoder, SYMTAB_MAGIC, SYMTAB_VERSION);
	encoder->in_symtab = true;
}

void sysprof_write_stream_begin(struct sysprof_encoder *encoder)
{
	byte_output_put_byte(&encoder->out, SYMTAB_END);
	encoder->in_symtab = false;
	put_header(encoder, encoder->kind->magic, encoder->kind->version);
}

void sysprof_write_prologue(struct sysprof_encoder *encoder)
{
	sysprof_write_symtab_begin(encoder);
	sysprof_write_stream_begin(encoder);
}

/* Header byte of a symbol in the part of the dump that is being written. */
static void begin_symbol(struct sysprof_encoder *encoder, uint8_t in_symtab,
                         uint8_t in_stream)
{
	extension_flush(encoder);
	byte_output_put_byte(&encoder->out,
	                     encoder->in_symtab ? in_symtab : in_stream);
}

void sysprof_write_proto(struct sysprof_encoder *encoder, uint64_t prototype,
                         const char *chunk, size_t chunk_bytes,
                         uint32_t first_line)
{
	begin_symbol(encoder, SYMTAB_LUA, encoder->kind->new_proto);
	byte_output_put_number(&encoder->out, prototype);
	byte_output_put_string(&encoder->out, chunk, chunk_bytes);
	byte_output_put_number(&encoder->out, wire_line(first_line));
}

void sysprof_write_c_symbol(struct sysprof_encoder *encoder, uint64_t address,
                            const char *name)
{
	if (address == EXTENSION_ADDRESS)
		return;
	begin_symbol(encoder, SYMTAB_C, encoder->kind->new_c);
	byte_output_put_number(&encoder->out, address);
	byte_output_put_string(&encoder->out, name, strlen(name));
}

void sysprof_write_trace(struct sysprof_encoder *encoder, uint64_t trace_number,
                         uint64_t prototype, uint32_t start_line)
{
	begin_symbol(encoder, SYMTAB_TRACE, encoder->kind->new_trace);
	byte_output_put_number(&encoder->out, trace_number);
	byte_output_put_number(&encoder->out, prototype);
	byte_output_put_number(&encoder->out, wire_line(start_line));
}

static void put_guest(struct byte_output *out, const struct guest_entry *guest,
                      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		byte_output_put_byte(out, guest[i].type);
		byte_output_put_number(out, guest[i].value);
		if (guest[i].type == GUEST_LUA)
			byte_output_put_number(out,
			                       wire_line(guest[i].first_line));
	}
	byte_output_put_byte(out, GUEST_BOTTOM);
}

void sysprof_write_sample(struct sysprof_encoder *encoder,
                          enum sample_state state,
                          const struct guest_entry *guest, size_t guest_count,
                          const uint64_t *host, size_t host_count)
{
	struct byte_output *out = &encoder->out;

	extension_flush(encoder);
	byte_output_put_byte(out, (uint8_t)state);
	if (sample_state_has_guest(state))
		put_guest(out, guest, guest_count);
	for (size_t i = 0; i < host_count; i++)
		if (host[i] != 0)
			byte_output_put_number(out, host[i]);
	byte_output_put_number(out, 0);
}

void sysprof_write_trace_sample(struct sysprof_encoder *encoder,
                                uint64_t trace_number, uint64_t prototype,
                                uint32_t first_line)
{
	extension_flush(encoder);
	byte_output_put_byte(&encoder->out, STATE_TRACE);
	byte_output_put_number(&encoder->out,
	                       trace_number ? trace_number : UNKNOWN_TRACE);
	byte_output_put_number(&encoder->out, prototype);
	byte_output_put_number(&encoder->out, wire_line(first_line));
}

bool sysprof_write_end(struct sysprof_encoder *encoder)
{
	extension_flush(encoder);
	byte_output_put_byte(&encoder->out, encoder->kind->end);
	return byte_output_flush(&encoder->out);
}

/* ---- the extension ----------------------------------------------------- */

void extension_item_number(struct extension_body *item, uint64_t number)
{
	item->used += number_encode(item->bytes + item->used, number);
}

void extension_item_string(struct extension_body *item, const char *string,
                           size_t bytes)
{
	if (bytes > EXTENSION_STRING_BYTES_MAX)
		bytes = EXTENSION_STRING_BYTES_MAX;
	extension_item_number(item, bytes);
	memcpy(item->bytes + item->used, string, bytes);
	item->used += bytes;
}

/* Of a path that is too long the end tells more than the beginning. */
static void item_chunk(struct extension_body *item, const char *chunk,
                       size_t bytes)
{
	const size_t tail = EXTENSION_STRING_BYTES_MAX - 1;

	if (bytes <= EXTENSION_STRING_BYTES_MAX || chunk[0] != '@') {
		extension_item_string(item, chunk, bytes);
		return;
	}
	extension_item_number(item, EXTENSION_STRING_BYTES_MAX);
	item->bytes[item->used++] = '@';
	memcpy(item->bytes + item->used, chunk + bytes - tail, tail);
	item->used += tail;
}

void extension_put(struct sysprof_encoder *encoder, enum extension_item kind,
                   const struct extension_body *item)
{
	size_t needed = 1 + NUMBER_BYTES_MAX + item->used;

	if (encoder->item_bytes + needed > sizeof(encoder->items))
		extension_flush(encoder);

	uint8_t *end = encoder->items + encoder->item_bytes;
	*end++ = (uint8_t)kind;
	end += number_encode(end, item->used);
	memcpy(end, item->bytes, item->used);
	encoder->item_bytes = (size_t)(end - encoder->items) + item->used;
}

void sysprof_write_session(struct sysprof_encoder *encoder,
                           const struct session_facts *facts)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, EXTENSION_VERSION);
	extension_item_number(&item, facts->pid);
	extension_item_number(&item, facts->mode);
	extension_item_number(&item, facts->interval_ns);
	extension_item_number(&item, facts->start_monotonic_ns);
	extension_item_number(&item, facts->start_realtime_ns);
	extension_item_string(&item, facts->clock, strlen(facts->clock));
	extension_item_string(&item, facts->vm, strlen(facts->vm));
	extension_item_string(&item, facts->writer, strlen(facts->writer));
	encoder->last_time_ns = facts->start_monotonic_ns;
	extension_put(encoder, ITEM_SESSION, &item);
}

void sysprof_write_lua_symbol(struct sysprof_encoder *encoder,
                              const struct lua_symbol_facts *facts)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, facts->id);
	extension_item_number(&item, facts->prototype);
	extension_item_number(&item, wire_line(facts->first_line));
	extension_item_number(&item, facts->line_count);
	item_chunk(&item, facts->chunk, facts->chunk_bytes);
	extension_item_string(&item, facts->function, strlen(facts->function));
	if (facts->prototype_bytes)
		extension_item_number(&item, facts->prototype_bytes);
	extension_put(encoder, ITEM_LUA_SYMBOL, &item);
}

void sysprof_write_fast_symbol(struct sysprof_encoder *encoder, uint64_t number,
                               const char *name)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, number);
	extension_item_string(&item, name, strlen(name));
	extension_put(encoder, ITEM_FAST_SYMBOL, &item);
}

void sysprof_write_node(struct sysprof_encoder *encoder, uint32_t parent,
                        const struct stack_node *node)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, parent);
	item.bytes[item.used++] =
		(uint8_t)((node->kind & FRAME_KIND_MASK) | node->flags);
	extension_item_number(&item, node->value);
	if (node->kind == FRAME_LUA || node->kind == FRAME_MARKER)
		extension_item_number(&item, node->line);
	extension_put(encoder, ITEM_NODE, &item);
}

void sysprof_write_reset_nodes(struct sysprof_encoder *encoder)
{
	struct extension_body item;

	item.used = 0;
	extension_put(encoder, ITEM_RESET_NODES, &item);
}

void sysprof_write_sample_facts(struct sysprof_encoder *encoder,
                                const struct sample_facts *facts)
{
	struct extension_body item;
	int64_t passed_ns = (int64_t)(facts->time_ns - encoder->last_time_ns);

	item.used = 0;
	extension_item_number(&item, number_zigzag(passed_ns));
	extension_item_number(&item, facts->thread_id);
	extension_item_number(&item, facts->vm_number);
	extension_item_number(&item, facts->coroutine);
	extension_item_number(&item, facts->leaf_node);
	encoder->last_time_ns = facts->time_ns;
	extension_put(encoder, ITEM_SAMPLE, &item);
}

void sysprof_write_label(struct sysprof_encoder *encoder, uint64_t coroutine,
                         const char *label)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, coroutine);
	extension_item_string(&item, label, strlen(label));
	extension_put(encoder, ITEM_LABEL, &item);
}

void sysprof_write_mapping(struct sysprof_encoder *encoder,
                           const struct mapping_facts *facts)
{
	size_t path_bytes = strlen(facts->path), cut = 0;
	struct extension_body item;

	if (path_bytes > EXTENSION_STRING_BYTES_MAX)
		cut = path_bytes - EXTENSION_STRING_BYTES_MAX;
	item.used = 0;
	extension_item_number(&item, facts->start);
	extension_item_number(&item, facts->bytes);
	extension_item_number(&item, facts->file_offset);
	extension_item_number(&item, facts->file_address);
	extension_item_string(&item, (const char *)facts->build_id,
	                      facts->build_id_bytes);
	extension_item_string(&item, facts->path + cut, path_bytes - cut);
	extension_put(encoder, ITEM_MAPPING, &item);
}

void sysprof_write_trace_code(struct sysprof_encoder *encoder,
                              uint64_t trace_number, uint64_t code,
                              uint64_t bytes)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, trace_number);
	extension_item_number(&item, code);
	extension_item_number(&item, bytes);
	extension_put(encoder, ITEM_TRACE_CODE, &item);
}

void sysprof_write_lost(struct sysprof_encoder *encoder,
                        enum lost_reason reason, uint64_t total_count)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, reason);
	extension_item_number(&item, total_count);
	extension_put(encoder, ITEM_LOST, &item);
}

void sysprof_write_interval(struct sysprof_encoder *encoder, uint64_t thread_id,
                            uint64_t interval_ns)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, thread_id);
	extension_item_number(&item, interval_ns);
	extension_put(encoder, ITEM_INTERVAL, &item);
}

void sysprof_write_session_end(struct sysprof_encoder *encoder,
                               uint64_t stop_monotonic_ns,
                               uint64_t sample_count, uint64_t lost_count)
{
	struct extension_body item;

	item.used = 0;
	extension_item_number(&item, stop_monotonic_ns);
	extension_item_number(&item, sample_count);
	extension_item_number(&item, lost_count);
	extension_put(encoder, ITEM_END, &item);
}
