// SPDX-License-Identifier: MIT
/* Reader of sysprof dumps; see dump_reader.h. */
#include "dump_reader.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define SYMTAB_TYPE_MASK 3
#define SYMTAB_UNUSED    3

bool dump_reader_fail(struct dump_reader *reader, uint64_t offset,
                      const char *format, ...)
{
	va_list arguments;
	int used = snprintf(
		reader->error, sizeof(reader->error),
		"%.200s: at offset %llu (0x%llx): ", reader->file_name,
		(unsigned long long)offset, (unsigned long long)offset);

	va_start(arguments, format);
	vsnprintf(reader->error + used, sizeof(reader->error) - (size_t)used,
	          format, arguments);
	va_end(arguments);
	return false;
}

/* ---- fields ------------------------------------------------------------ */

/* what: the field, for the message. */
static bool field_missing(struct dump_reader *reader, const char *what)
{
	if (reader->text.out_of_memory)
		return dump_reader_fail(reader, byte_input_offset(&reader->in),
		                        "out of memory for the %s", what);
	return dump_reader_fail(reader, reader->in.problem_offset,
	                        "expected the %s, but got: %s", what,
	                        byte_input_problem_text(&reader->in));
}

static bool read_byte(struct dump_reader *reader, uint8_t *byte,
                      const char *what)
{
	return byte_input_get_byte(&reader->in, byte) ||
	       field_missing(reader, what);
}

static bool read_number(struct dump_reader *reader, uint64_t *number,
                        const char *what)
{
	return byte_input_get_number(&reader->in, number) ||
	       field_missing(reader, what);
}

static bool read_text(struct dump_reader *reader, struct dump_record *record,
                      const char *what)
{
	if (!byte_input_get_string(&reader->in, &reader->text,
	                           DUMP_STRING_BYTES_MAX))
		return field_missing(reader, what);
	record->text = reader->text.bytes;
	record->text_bytes = reader->text.length;
	record->readable_bytes = reader->text.length;
	record->text_offset =
		byte_input_offset(&reader->in) - reader->text.length;
	return true;
}

/* ---- symbols ----------------------------------------------------------- */

static bool read_proto(struct dump_reader *reader, struct dump_record *record)
{
	record->kind = DUMP_PROTO;
	return read_number(reader, &record->address,
	                   "prototype address of a Lua function") &&
	       read_text(reader, record, "chunk name of a Lua function") &&
	       read_number(reader, &record->line,
	                   "first line of a Lua function");
}

/* Of items that are in the chunk, which is usual, no copy is made. Never waits
 * for more than the record, whose writer may be a living one. */
static bool read_extension(struct dump_reader *reader,
                           struct dump_record *record)
{
	struct byte_input *in = &reader->in;
	const uint8_t *bytes = NULL;
	uint64_t count = 0;
	size_t length_bytes = 0;

	record->kind = DUMP_EXTENSION;
	if (in->count - in->next >= sizeof(uint64_t))
		length_bytes =
			number_decode_short(in->bytes + in->next, &count);
	if (length_bytes > 0 && count <= DUMP_CHUNK_BYTES - sizeof(uint64_t))
		bytes = byte_input_peek(in, length_bytes + (size_t)count);
	if (bytes == NULL)
		return read_text(reader, record, "items of an extension");
	record->text = (const char *)bytes + length_bytes;
	record->text_bytes = (size_t)count;
	record->readable_bytes = in->count - in->next - length_bytes;
	record->text_offset = byte_input_offset(in) + length_bytes;
	in->next += length_bytes + (size_t)count;
	return true;
}

static bool read_c_symbol(struct dump_reader *reader,
                          struct dump_record *record)
{
	record->kind = DUMP_C_SYMBOL;
	if (!read_number(reader, &record->address, "address of a C symbol"))
		return false;
	if (record->address == EXTENSION_ADDRESS && !reader->in_symtab)
		return read_extension(reader, record);
	return read_text(reader, record, "name of a C symbol");
}

static bool read_trace(struct dump_reader *reader, struct dump_record *record)
{
	record->kind = DUMP_TRACE;
	return read_number(reader, &record->number, "number of a trace") &&
	       read_number(reader, &record->address,
	                   "prototype address of a trace") &&
	       read_number(reader, &record->line, "start line of a trace");
}

/*
 * Symbol tables of version 2, which memory profiles of early 2022 have, knew
 * traces under what is now C symbols, and first had the address of the machine
 * code before the prototype's. No version tells the two forms apart, but no
 * address is as low as a line.
 */
#define EARLY_LINE_MAX (1u << 24)

static bool read_early_trace(struct dump_reader *reader,
                             struct dump_record *record)
{
	if (!read_trace(reader, record))
		return false;
	if (record->line < EARLY_LINE_MAX || record->line == UINT64_MAX)
		return true;
	record->address = record->line;
	return read_number(reader, &record->line, "start line of a trace");
}

/* ---- samples ----------------------------------------------------------- */

static bool read_guest_frame(struct dump_reader *reader, uint8_t type,
                             uint64_t offset, struct dump_guest *frame)
{
	frame->type = type;
	frame->line = 0;
	switch (type) {
	case GUEST_LUA:
		return read_number(reader, &frame->value,
		                   "prototype address of a frame") &&
		       read_number(reader, &frame->line,
		                   "first line of a frame");
	case GUEST_C:
		return read_number(reader, &frame->value,
		                   "C function address of a frame");
	case GUEST_FAST:
		return read_number(reader, &frame->value,
		                   "fast function number of a frame");
	}
	return dump_reader_fail(reader, offset,
	                        "expected the type of a Lua stack's frame (1, "
	                        "2, 3, or 0x80 for its bottom), got 0x%02x",
	                        type);
}

static bool check_depth(struct dump_reader *reader, size_t count,
                        uint64_t offset)
{
	return count < DUMP_FRAMES_MAX ||
	       dump_reader_fail(reader, offset,
	                        "expected at most %u frames in a sample, got "
	                        "more",
	                        DUMP_FRAMES_MAX);
}

static bool read_guest(struct dump_reader *reader, struct dump_record *record)
{
	size_t count = 0;

	for (;;) {
		uint64_t offset = byte_input_offset(&reader->in);
		uint8_t type;

		if (!read_byte(reader, &type, "next frame of a Lua stack"))
			return false;
		if (type == GUEST_BOTTOM)
			break;
		if (!check_depth(reader, count, offset))
			return false;
		reader->guest =
			memory_grow(reader->guest, &reader->guest_capacity,
		                    count + 1, sizeof(*reader->guest));
		if (!read_guest_frame(reader, type, offset,
		                      &reader->guest[count++]))
			return false;
	}
	record->guest = reader->guest;
	record->guest_count = count;
	return true;
}

static bool read_host(struct dump_reader *reader, struct dump_record *record)
{
	size_t count = 0;

	for (;;) {
		uint64_t offset = byte_input_offset(&reader->in);
		uint64_t address;

		if (!read_number(reader, &address,
		                 "next address of a native stack"))
			return false;
		if (address == 0)
			break;
		if (!check_depth(reader, count, offset))
			return false;
		reader->host = memory_grow(reader->host, &reader->host_capacity,
		                           count + 1, sizeof(*reader->host));
		reader->host[count++] = address;
	}
	record->host = reader->host;
	record->host_count = count;
	return true;
}

/*
 * Where both stacks of a sample end, if they are between bytes and end, in
 * numbers of up to 8 bytes, and good. NULL: read them frame by frame, which
 * also tells what is wrong.
 */
static const uint8_t *skip_stacks(const uint8_t *bytes, const uint8_t *end,
                                  bool has_guest)
{
	uint64_t number = 0;
	size_t count;

	/* A type and two numbers, or one number, at a time. */
	while (end - bytes >= 17) {
		if (has_guest) {
			uint8_t type = *bytes++;

			has_guest = type != GUEST_BOTTOM;
			if (!has_guest)
				continue;
			if (type < GUEST_LUA || type > GUEST_FAST)
				return NULL;
			count = number_decode_short(bytes, &number);
			bytes += count;
			if (count > 0 && type == GUEST_LUA)
				bytes += count =
					number_decode_short(bytes, &number);
			if (count == 0)
				return NULL;
			continue;
		}
		count = number_decode_short(bytes, &number);
		bytes += count;
		if (count == 0)
			return NULL;
		if (number == 0)
			return bytes;
	}
	return NULL;
}

/* True: done. */
static bool try_skip_stacks(struct dump_reader *reader,
                            const struct dump_record *record)
{
	struct byte_input *in = &reader->in;
	const uint8_t *start = in->bytes + in->next;
	const uint8_t *end = skip_stacks(start, in->bytes + in->count,
	                                 sample_state_has_guest(record->state));

	if (end != NULL)
		in->next += (size_t)(end - start);
	return end != NULL;
}

static bool read_trace_sample(struct dump_reader *reader,
                              struct dump_record *record)
{
	record->kind = DUMP_TRACE_SAMPLE;
	return read_number(reader, &record->number, "trace of a sample") &&
	       read_number(reader, &record->address,
	                   "prototype address of a trace's sample") &&
	       read_number(reader, &record->line,
	                   "first line of a trace's sample");
}

static bool read_sample(struct dump_reader *reader, struct dump_record *record)
{
	record->kind = DUMP_SAMPLE;
	if (reader->skip_stacks && try_skip_stacks(reader, record))
		return true;
	if (sample_state_has_guest(record->state) &&
	    !read_guest(reader, record))
		return false;
	return read_host(reader, record);
}

/* ---- events of memory profiles ------------------------------------------ */

static bool read_source(struct dump_reader *reader, struct dump_event *event)
{
	switch (event->source) {
	case MEMPROF_INTERNAL:
		return true;
	case MEMPROF_LUA:
		return read_number(reader, &event->value,
		                   "prototype address of an event") &&
		       read_number(reader, &event->line, "line of an event");
	case MEMPROF_C:
		return read_number(reader, &event->value,
		                   "C function address of an event");
	case MEMPROF_TRACE:
		return read_number(reader, &event->value, "trace of an event");
	}
	return false;
}

static bool read_event(struct dump_reader *reader, struct dump_record *record,
                       uint8_t header)
{
	struct dump_event *event = &record->event;

	record->kind = DUMP_EVENT;
	event->event = header & MEMPROF_EVENT_MASK;
	event->source = header >> MEMPROF_SOURCE_SHIFT;
	if (event->source < MEMPROF_INTERNAL || event->source > MEMPROF_TRACE)
		return dump_reader_fail(reader, record->offset,
		                        "expected an event with a source from "
		                        "1 to 4, got source %u",
		                        (unsigned)event->source);
	if (!read_source(reader, event))
		return false;
	if (event->event != MEMPROF_ALLOC &&
	    (!read_number(reader, &event->old_address,
	                  "old address of an event") ||
	     !read_number(reader, &event->old_bytes, "old size of an event")))
		return false;
	return event->event == MEMPROF_FREE ||
	       (read_number(reader, &event->new_address,
	                    "new address of an event") &&
	        read_number(reader, &event->new_bytes, "new size of an event"));
}

/* *has_fields is false for symbol events of other sources, which have none. */
static bool read_memory_record(struct dump_reader *reader,
                               struct dump_record *record, uint8_t header,
                               bool *has_fields)
{
	*has_fields = true;
	if ((header & MEMPROF_EVENT_MASK) != MEMPROF_SYMBOL)
		return read_event(reader, record, header);
	switch (header) {
	case MEMPROF_NEW_PROTO:
		return read_proto(reader, record);
	case MEMPROF_NEW_C:
		return read_c_symbol(reader, record);
	case MEMPROF_NEW_TRACE:
		return read_trace(reader, record);
	}
	*has_fields = false;
	return true;
}

/* ---- headers and records ----------------------------------------------- */

/* What else it may be that does not start as it should. */
static const char *other_kind(const struct dump_reader *reader,
                              const char *magic)
{
	if (memcmp(magic, MEMPROF_MAGIC, STREAM_MAGIC_BYTES) == 0)
		return "this is a memory profile, for luajit-parse-memprof";
	if (memcmp(magic, SYSPROF_MAGIC, STREAM_MAGIC_BYTES) == 0)
		return "this is a sysprof dump, for luajit-parse-sysprof";
	return reader->wants_memprof ? "not a memory profile"
	                             : "not a sysprof dump";
}

static bool read_header(struct dump_reader *reader, const char *magic,
                        const char *what, uint8_t *version)
{
	uint64_t offset = byte_input_offset(&reader->in);
	char got[STREAM_MAGIC_BYTES];

	if (!byte_input_get_bytes(&reader->in, got, sizeof(got)))
		return field_missing(reader, what);
	if (memcmp(got, magic, sizeof(got)) != 0)
		return dump_reader_fail(
			reader, offset,
			"expected the %s (bytes \"%s\"), got bytes %02x %02x "
			"%02x: %s",
			what, magic, (unsigned char)got[0],
			(unsigned char)got[1], (unsigned char)got[2],
			other_kind(reader, got));
	if (!read_byte(reader, version, "version"))
		return false;
	return byte_input_get_bytes(&reader->in, NULL,
	                            STREAM_HEADER_BYTES - STREAM_MAGIC_BYTES -
	                                    1) ||
	       field_missing(reader, "three reserved bytes of a header");
}

bool dump_reader_open_input(struct dump_reader *reader, byte_input_reader read,
                            void *context, const char *file_name)
{
	uint8_t *version = &reader->table_version;

	reader->file_name = file_name;
	reader->chunk = memory_zeroed(DUMP_CHUNK_BYTES, 1);
	byte_input_open_reader(&reader->in, read, context, reader->chunk,
	                       DUMP_CHUNK_BYTES);
	reader->in_symtab = true;
	if (!read_header(reader, SYMTAB_MAGIC, "start of the symbol table",
	                 version))
		return false;
	if (*version >= 1 && *version <= SYMTAB_VERSION)
		return true;
	return dump_reader_fail(reader, STREAM_MAGIC_BYTES,
	                        "expected a symbol table of version 1 to %d, "
	                        "got version %u",
	                        SYMTAB_VERSION, *version);
}

bool dump_reader_open(struct dump_reader *reader, FILE *file,
                      const char *file_name)
{
	return dump_reader_open_input(reader, byte_input_read_file, file,
	                              file_name);
}

void dump_reader_close(struct dump_reader *reader)
{
	byte_string_free(&reader->text);
	free(reader->guest);
	free(reader->host);
	free(reader->chunk);
	reader->chunk = NULL;
	reader->guest = NULL;
	reader->host = NULL;
}

static bool begin_stream(struct dump_reader *reader)
{
	uint64_t offset = byte_input_offset(&reader->in);
	bool memprof = reader->wants_memprof;
	int version = memprof ? MEMPROF_VERSION : SYSPROF_VERSION;

	reader->in_symtab = false;
	if (!read_header(reader, memprof ? MEMPROF_MAGIC : SYSPROF_MAGIC,
	                 memprof ? "start of the event stream"
	                         : "start of the sample stream",
	                 &reader->stream_version))
		return false;
	if (reader->stream_version == 1 || reader->stream_version == version)
		return true;
	return dump_reader_fail(reader, offset + STREAM_MAGIC_BYTES,
	                        "expected a stream of version 1 or %d, got "
	                        "version %u",
	                        version, reader->stream_version);
}

/* The body behind a header byte of the symbol table, whose bits 0 and 1 are the
 * type; the others are without meaning. */
static bool read_table_record(struct dump_reader *reader,
                              struct dump_record *record, uint8_t header)
{
	switch (header & SYMTAB_TYPE_MASK) {
	case SYMTAB_LUA:
		return read_proto(reader, record);
	case SYMTAB_C:
		if (reader->table_version < SYMTAB_VERSION)
			return read_early_trace(reader, record);
		return read_c_symbol(reader, record);
	case SYMTAB_TRACE:
		return read_trace(reader, record);
	}
	return true;
}

static bool read_stream_record(struct dump_reader *reader,
                               struct dump_record *record, uint8_t header)
{
	/* Version 1 had C symbols alone, under what is now NEW_PROTO. */
	if (reader->stream_version == 1 && header >= SYSPROF_NEW_PROTO)
		header = header == SYSPROF_NEW_PROTO ? SYSPROF_NEW_C : 0xff;
	switch (header) {
	case SYSPROF_NEW_PROTO:
		return read_proto(reader, record);
	case SYSPROF_NEW_C:
		return read_c_symbol(reader, record);
	case SYSPROF_NEW_TRACE:
		return read_trace(reader, record);
	}
	record->state = header;
	return header == STATE_TRACE ? read_trace_sample(reader, record)
	                             : read_sample(reader, record);
}

static bool is_stream_header(const struct dump_reader *reader, uint8_t header)
{
	if (reader->wants_memprof)
		return header <= MEMPROF_HEADER_MAX;
	return header <= (reader->stream_version == 1 ? SYSPROF_NEW_PROTO
	                                              : SYSPROF_NEW_TRACE);
}

static bool is_memory_record(const struct dump_reader *reader, uint8_t header)
{
	return reader->wants_memprof && !reader->in_symtab &&
	       header <= MEMPROF_HEADER_MAX;
}

enum dump_read dump_reader_next(struct dump_reader *reader,
                                struct dump_record *record)
{
	uint8_t header;
	bool has_fields;

	for (;;) {
		*record = (struct dump_record){
			.offset = byte_input_offset(&reader->in)};
		if (!read_byte(reader, &header,
		               reader->in_symtab
		                       ? "next symbol, or the table's end"
		                       : "next record, or the end record"))
			return DUMP_READ_FAILED;
		if (is_memory_record(reader, header)) {
			if (!read_memory_record(reader, record, header,
			                        &has_fields))
				return DUMP_READ_FAILED;
			if (has_fields)
				return DUMP_READ_RECORD;
			continue;
		}
		if (!reader->in_symtab)
			break;
		if ((header & SYMTAB_TYPE_MASK) == SYMTAB_UNUSED &&
		    (header & SYMTAB_END) == 0)
			continue; /* has no fields */
		if ((header & SYMTAB_END) == 0)
			return read_table_record(reader, record, header)
			               ? DUMP_READ_RECORD
			               : DUMP_READ_FAILED;
		if (!begin_stream(reader))
			return DUMP_READ_FAILED;
	}
	if (header == SYSPROF_END) {
		reader->ended = true;
		return DUMP_READ_END;
	}
	if (!is_stream_header(reader, header)) {
		dump_reader_fail(reader, record->offset,
		                 "expected a record (0 to %d, or 0x80 for the "
		                 "end), got 0x%02x",
		                 reader->wants_memprof ? MEMPROF_HEADER_MAX
		                                       : SYSPROF_NEW_TRACE,
		                 header);
		return DUMP_READ_FAILED;
	}
	return read_stream_record(reader, record, header) ? DUMP_READ_RECORD
	                                                  : DUMP_READ_FAILED;
}

bool dump_reader_has_trailing(struct dump_reader *reader)
{
	return reader->ended && !byte_input_at_end(&reader->in);
}
