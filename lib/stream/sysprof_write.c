// SPDX-License-Identifier: MIT
/*
 * Encoder of a sysprof dump; see sysprof_write.h.
 * Runs on the writer thread. Never allocates.
 */
#include "sysprof_write.h"

#include <string.h>

/* Largest item: a session, with three strings of the greatest length. */
#define ITEM_BODY_BYTES_MAX                                                    \
	(3 * (EXTENSION_STRING_BYTES_MAX + NUMBER_BYTES_MAX) +                 \
	 6 * NUMBER_BYTES_MAX)

_Static_assert(ITEM_BODY_BYTES_MAX + 1 + NUMBER_BYTES_MAX <=
                       EXTENSION_BUFFER_BYTES,
               "every extension item fits the buffer");

/* Body of one extension item under construction. */
struct item {
	size_t used;
	uint8_t bytes[ITEM_BODY_BYTES_MAX];
};

/* 32-bit lines are signed in the VM and widened to 64 bits on the wire. */
static uint64_t wire_line(uint32_t line)
{
	return (uint64_t)(int64_t)(int32_t)line;
}

void sysprof_encoder_open(struct sysprof_encoder *encoder, uint8_t *buffer,
                          size_t capacity, byte_output_flusher flusher,
                          void *context)
{
	byte_output_open(&encoder->out, buffer, capacity, flusher, context);
	encoder->in_symtab = false;
	encoder->last_time_ns = 0;
	encoder->item_bytes = 0;
}

bool sysprof_encoder_is_open(const struct sysprof_encoder *encoder)
{
	return byte_output_is_open(&encoder->out);
}

static void flush_items(struct sysprof_encoder *encoder)
{
	if (encoder->item_bytes == 0)
		return;
	byte_output_put_byte(&encoder->out, SYSPROF_NEW_C);
	byte_output_put_number(&encoder->out, EXTENSION_ADDRESS);
	byte_output_put_string(&encoder->out, (const char *)encoder->items,
	                       encoder->item_bytes);
	encoder->item_bytes = 0;
}

bool sysprof_encoder_flush(struct sysprof_encoder *encoder)
{
	flush_items(encoder);
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
	put_header(encoder, SYSPROF_MAGIC, SYSPROF_VERSION);
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
	flush_items(encoder);
	byte_output_put_byte(&encoder->out,
	                     encoder->in_symtab ? in_symtab : in_stream);
}

void sysprof_write_proto(struct sysprof_encoder *encoder, uint64_t prototype,
                         const char *chunk, size_t chunk_bytes,
                         uint32_t first_line)
{
	begin_symbol(encoder, SYMTAB_LUA, SYSPROF_NEW_PROTO);
	byte_output_put_number(&encoder->out, prototype);
	byte_output_put_string(&encoder->out, chunk, chunk_bytes);
	byte_output_put_number(&encoder->out, wire_line(first_line));
}

void sysprof_write_c_symbol(struct sysprof_encoder *encoder, uint64_t address,
                            const char *name)
{
	if (address == EXTENSION_ADDRESS)
		return;
	begin_symbol(encoder, SYMTAB_C, SYSPROF_NEW_C);
	byte_output_put_number(&encoder->out, address);
	byte_output_put_string(&encoder->out, name, strlen(name));
}

void sysprof_write_trace(struct sysprof_encoder *encoder, uint64_t trace_number,
                         uint64_t prototype, uint32_t start_line)
{
	begin_symbol(encoder, SYMTAB_TRACE, SYSPROF_NEW_TRACE);
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

	flush_items(encoder);
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
	flush_items(encoder);
	byte_output_put_byte(&encoder->out, STATE_TRACE);
	byte_output_put_number(&encoder->out,
	                       trace_number ? trace_number : UNKNOWN_TRACE);
	byte_output_put_number(&encoder->out, prototype);
	byte_output_put_number(&encoder->out, wire_line(first_line));
}

bool sysprof_write_end(struct sysprof_encoder *encoder)
{
	flush_items(encoder);
	byte_output_put_byte(&encoder->out, SYSPROF_END);
	return byte_output_flush(&encoder->out);
}

/* ---- the extension ----------------------------------------------------- */

static void item_number(struct item *item, uint64_t number)
{
	item->used += number_encode(item->bytes + item->used, number);
}

static void item_string(struct item *item, const char *string, size_t bytes)
{
	if (bytes > EXTENSION_STRING_BYTES_MAX)
		bytes = EXTENSION_STRING_BYTES_MAX;
	item_number(item, bytes);
	memcpy(item->bytes + item->used, string, bytes);
	item->used += bytes;
}

/* Of a path that is too long the end tells more than the beginning. */
static void item_chunk(struct item *item, const char *chunk, size_t bytes)
{
	const size_t tail = EXTENSION_STRING_BYTES_MAX - 1;

	if (bytes <= EXTENSION_STRING_BYTES_MAX || chunk[0] != '@') {
		item_string(item, chunk, bytes);
		return;
	}
	item_number(item, EXTENSION_STRING_BYTES_MAX);
	item->bytes[item->used++] = '@';
	memcpy(item->bytes + item->used, chunk + bytes - tail, tail);
	item->used += tail;
}

static void put_item(struct sysprof_encoder *encoder, enum extension_item kind,
                     const struct item *item)
{
	size_t needed = 1 + NUMBER_BYTES_MAX + item->used;

	if (encoder->item_bytes + needed > sizeof(encoder->items))
		flush_items(encoder);

	uint8_t *end = encoder->items + encoder->item_bytes;
	*end++ = (uint8_t)kind;
	end += number_encode(end, item->used);
	memcpy(end, item->bytes, item->used);
	encoder->item_bytes = (size_t)(end - encoder->items) + item->used;
}

void sysprof_write_session(struct sysprof_encoder *encoder,
                           const struct session_facts *facts)
{
	struct item item;

	item.used = 0;
	item_number(&item, EXTENSION_VERSION);
	item_number(&item, facts->pid);
	item_number(&item, facts->mode);
	item_number(&item, facts->interval_ns);
	item_number(&item, facts->start_monotonic_ns);
	item_number(&item, facts->start_realtime_ns);
	item_string(&item, facts->clock, strlen(facts->clock));
	item_string(&item, facts->vm, strlen(facts->vm));
	item_string(&item, facts->writer, strlen(facts->writer));
	encoder->last_time_ns = facts->start_monotonic_ns;
	put_item(encoder, ITEM_SESSION, &item);
}

void sysprof_write_lua_symbol(struct sysprof_encoder *encoder,
                              const struct lua_symbol_facts *facts)
{
	struct item item;

	item.used = 0;
	item_number(&item, facts->id);
	item_number(&item, facts->prototype);
	item_number(&item, wire_line(facts->first_line));
	item_number(&item, facts->line_count);
	item_chunk(&item, facts->chunk, facts->chunk_bytes);
	item_string(&item, facts->function, strlen(facts->function));
	put_item(encoder, ITEM_LUA_SYMBOL, &item);
}

void sysprof_write_fast_symbol(struct sysprof_encoder *encoder, uint64_t number,
                               const char *name)
{
	struct item item;

	item.used = 0;
	item_number(&item, number);
	item_string(&item, name, strlen(name));
	put_item(encoder, ITEM_FAST_SYMBOL, &item);
}

void sysprof_write_node(struct sysprof_encoder *encoder, uint32_t parent,
                        const struct stack_node *node)
{
	struct item item;

	item.used = 0;
	item_number(&item, parent);
	item.bytes[item.used++] =
		(uint8_t)((node->kind & FRAME_KIND_MASK) | node->flags);
	item_number(&item, node->value);
	if (node->kind == FRAME_LUA || node->kind == FRAME_MARKER)
		item_number(&item, node->line);
	put_item(encoder, ITEM_NODE, &item);
}

void sysprof_write_reset_nodes(struct sysprof_encoder *encoder)
{
	struct item item;

	item.used = 0;
	put_item(encoder, ITEM_RESET_NODES, &item);
}

void sysprof_write_sample_facts(struct sysprof_encoder *encoder,
                                const struct sample_facts *facts)
{
	struct item item;
	int64_t passed_ns = (int64_t)(facts->time_ns - encoder->last_time_ns);

	item.used = 0;
	item_number(&item, number_zigzag(passed_ns));
	item_number(&item, facts->thread_id);
	item_number(&item, facts->vm_number);
	item_number(&item, facts->coroutine);
	item_number(&item, facts->leaf_node);
	encoder->last_time_ns = facts->time_ns;
	put_item(encoder, ITEM_SAMPLE, &item);
}

void sysprof_write_lost(struct sysprof_encoder *encoder,
                        enum lost_reason reason, uint64_t total_count)
{
	struct item item;

	item.used = 0;
	item_number(&item, reason);
	item_number(&item, total_count);
	put_item(encoder, ITEM_LOST, &item);
}

void sysprof_write_session_end(struct sysprof_encoder *encoder,
                               uint64_t stop_monotonic_ns,
                               uint64_t sample_count, uint64_t lost_count)
{
	struct item item;

	item.used = 0;
	item_number(&item, stop_monotonic_ns);
	item_number(&item, sample_count);
	item_number(&item, lost_count);
	put_item(encoder, ITEM_END, &item);
}
