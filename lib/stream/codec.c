// SPDX-License-Identifier: MIT
/*
 * The byte level of every dump; see codec.h.
 * In the profiled process on the writer thread only: the flusher may do I/O.
 */
#include "codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- output ------------------------------------------------------------ */

void byte_output_open(struct byte_output *out, uint8_t *buffer, size_t capacity,
                      byte_output_flusher flusher, void *context)
{
	*out = (struct byte_output){
		.buffer = buffer,
		.capacity = capacity,
		.flusher = flusher,
		.context = context,
	};
}

bool byte_output_is_open(const struct byte_output *out)
{
	return !out->failed && !out->ended;
}

bool byte_output_flush(struct byte_output *out)
{
	if (!byte_output_is_open(out))
		return false;
	if (out->used == 0)
		return true;

	const void *data = out->buffer;
	size_t taken = out->flusher(&data, out->used, out->context);

	out->failed = taken < out->used;
	out->ended = data == NULL;
	out->used = 0;
	/* The flusher may exchange its own buffer, which is writable. */
	out->buffer = (uint8_t *)(uintptr_t)data;
	return byte_output_is_open(out);
}

void byte_output_put_byte(struct byte_output *out, uint8_t byte)
{
	byte_output_put_bytes(out, &byte, 1);
}

void byte_output_put_bytes(struct byte_output *out, const void *bytes,
                           size_t count)
{
	const uint8_t *source = bytes;

	while (count > 0 && byte_output_is_open(out)) {
		size_t room = out->capacity - out->used;
		size_t part = count < room ? count : room;

		if (part == 0) {
			byte_output_flush(out);
			continue;
		}
		memcpy(out->buffer + out->used, source, part);
		out->used += part;
		source += part;
		count -= part;
	}
}

size_t number_encode(uint8_t *bytes, uint64_t number)
{
	size_t count = 0;

	while (number >= 0x80) {
		bytes[count++] = (uint8_t)(number | 0x80);
		number >>= 7;
	}
	bytes[count++] = (uint8_t)number;
	return count;
}

uint64_t number_zigzag(int64_t number)
{
	return ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0);
}

int64_t number_unzigzag(uint64_t number)
{
	return (int64_t)((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

void byte_output_put_number(struct byte_output *out, uint64_t number)
{
	uint8_t bytes[NUMBER_BYTES_MAX];

	byte_output_put_bytes(out, bytes, number_encode(bytes, number));
}

void byte_output_put_string(struct byte_output *out, const char *string,
                            size_t bytes)
{
	byte_output_put_number(out, bytes);
	byte_output_put_bytes(out, string, bytes);
}

/* ---- input ------------------------------------------------------------- */

void byte_input_open_reader(struct byte_input *in, byte_input_reader reader,
                            void *context, uint8_t *chunk, size_t chunk_bytes)
{
	*in = (struct byte_input){
		.reader = reader,
		.context = context,
		.bytes = chunk,
		.chunk = chunk,
		.chunk_bytes = chunk_bytes,
	};
}

size_t byte_input_read_file(void *file, void *bytes, size_t count)
{
	errno = 0;

	size_t got = fread(bytes, 1, count, file);
	if (got == 0 && !ferror(file))
		errno = 0;
	return got;
}

void byte_input_open_memory(struct byte_input *in, const void *bytes,
                            size_t count, uint64_t base)
{
	*in = (struct byte_input){
		.bytes = bytes,
		.count = count,
		.base = base,
	};
}

uint64_t byte_input_offset(const struct byte_input *in)
{
	return in->base + in->next;
}

static bool input_fail(struct byte_input *in, enum byte_input_problem problem,
                       uint64_t offset)
{
	if (in->problem == INPUT_GOOD) {
		in->problem = problem;
		in->problem_offset = offset;
	}
	return false;
}

/* At least one byte to give out? item_offset: of what is being read. */
static bool input_fill(struct byte_input *in, uint64_t item_offset)
{
	if (in->problem != INPUT_GOOD)
		return false;
	if (in->next < in->count)
		return true;
	if (in->reader == NULL)
		return input_fail(in, INPUT_END, item_offset);

	in->base += in->count;
	in->next = 0;
	errno = 0;
	in->count = in->reader(in->context, in->chunk, in->chunk_bytes);
	if (in->count > 0)
		return true;
	if (errno == 0)
		return input_fail(in, INPUT_END, item_offset);
	in->sys_errno = errno;
	return input_fail(in, INPUT_READ_FAILED, item_offset);
}

const uint8_t *byte_input_peek(struct byte_input *in, size_t count)
{
	while (in->count - in->next < count) {
		if (in->reader == NULL || count > in->chunk_bytes ||
		    in->problem != INPUT_GOOD)
			return NULL;
		memmove(in->chunk, in->chunk + in->next, in->count - in->next);
		in->base += in->next;
		in->count -= in->next;
		in->next = 0;
		errno = 0;
		size_t got = in->reader(in->context, in->chunk + in->count,
		                        in->chunk_bytes - in->count);
		if (got == 0) /* asked again, it says so again */
			return NULL;
		in->count += got;
	}
	return in->bytes + in->next;
}

bool byte_input_at_end(struct byte_input *in)
{
	if (in->problem != INPUT_GOOD)
		return in->problem == INPUT_END;
	if (input_fill(in, byte_input_offset(in)))
		return false;
	if (in->problem != INPUT_END)
		return false;
	in->problem = INPUT_GOOD; /* asking is not reading */
	return true;
}

bool byte_input_get_byte(struct byte_input *in, uint8_t *byte)
{
	if (!input_fill(in, byte_input_offset(in)))
		return false;
	*byte = in->bytes[in->next++];
	return true;
}

static bool get_number_by_byte(struct byte_input *in, uint64_t *number)
{
	uint64_t start = byte_input_offset(in);
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		if (!input_fill(in, start))
			return false;
		byte = in->bytes[in->next++];
		uint64_t bits = byte & 0x7f;

		if (shift >= 64 ? bits != 0 : bits << shift >> shift != bits)
			return input_fail(in, INPUT_BAD_NUMBER, start);
		if (shift < 64) {
			value |= bits << shift;
			shift += 7;
		}
	} while (byte & 0x80);
	*number = value;
	return true;
}

bool byte_input_get_number(struct byte_input *in, uint64_t *number)
{
	if (in->count - in->next >= sizeof(uint64_t) &&
	    in->problem == INPUT_GOOD) {
		size_t bytes =
			number_decode_short(in->bytes + in->next, number);

		in->next += bytes;
		if (bytes > 0)
			return true;
	}
	return get_number_by_byte(in, number);
}

static bool copy_bytes(struct byte_input *in, uint8_t *bytes, uint64_t count,
                       uint64_t item_offset)
{
	while (count > 0) {
		if (!input_fill(in, item_offset))
			return false;
		size_t part = in->count - in->next;

		if (part > count)
			part = (size_t)count;
		if (bytes != NULL) {
			memcpy(bytes, in->bytes + in->next, part);
			bytes += part;
		}
		in->next += part;
		count -= part;
	}
	return true;
}

bool byte_input_get_bytes(struct byte_input *in, void *bytes, uint64_t count)
{
	return copy_bytes(in, bytes, count, byte_input_offset(in));
}

const char *byte_input_problem_text(const struct byte_input *in)
{
	switch (in->problem) {
	case INPUT_GOOD:
		return "no problem";
	case INPUT_END:
		return "the input ends";
	case INPUT_BAD_NUMBER:
		return "a number of more than 64 bits";
	case INPUT_READ_FAILED:
		return strerror(in->sys_errno);
	}
	return "unknown problem";
}

/* ---- growing strings --------------------------------------------------- */

void byte_string_free(struct byte_string *string)
{
	free(string->bytes);
	*string = (struct byte_string){0};
}

/* Room for count more bytes and the terminator. */
static bool string_grow(struct byte_string *string, size_t count)
{
	size_t needed = string->length + count + 1;

	if (needed <= string->capacity)
		return true;

	size_t capacity = string->capacity * 2;
	if (capacity < needed)
		capacity = needed;
	char *bytes = realloc(string->bytes, capacity);
	if (bytes == NULL) {
		string->out_of_memory = true;
		return false;
	}
	string->bytes = bytes;
	string->capacity = capacity;
	return true;
}

bool byte_input_get_string(struct byte_input *in, struct byte_string *string,
                           size_t limit)
{
	uint64_t start = byte_input_offset(in);
	uint64_t count;

	string->length = 0;
	if (!byte_input_get_number(in, &count) || !string_grow(string, 0))
		return false;

	uint64_t kept = count < limit ? count : limit;
	while (string->length < kept) {
		if (!input_fill(in, start))
			return false;
		size_t part = in->count - in->next;

		if (part > kept - string->length)
			part = (size_t)(kept - string->length);
		if (!string_grow(string, part))
			return false;
		copy_bytes(in, (uint8_t *)string->bytes + string->length, part,
		           start);
		string->length += part;
	}
	string->bytes[string->length] = '\0';
	return copy_bytes(in, NULL, count - kept, start);
}
