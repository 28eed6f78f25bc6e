// SPDX-License-Identifier: MIT
/*
 * Cursor: reads numbers and pointers as DWARF and .eh_frame have them, out of a
 * copy of an object's memory, of which it believes nothing. Not for the signal
 * handler.
 */
#ifndef HOST_DWARF_CURSOR_H
#define HOST_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that were copied from an address, to which positions in them refer. */
struct memory_copy {
	uint64_t address;
	const uint8_t *bytes;
	size_t count;
};

/* A part of a copy; reading past its end gives zeroes and sets overrun. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t displacement; /* where they were, less where they are */
	bool overrun;
};

/* Pointer encodings: low half the format, then what it is relative to. */
#define ENCODING_OMIT        0xff
#define ENCODING_BASE_MASK   0x70
#define ENCODING_PC_RELATIVE 0x10
#define ENCODING_FORM_MASK   0x0f
#define ENCODING_TABLE       0x3b /* relative to the header, signed 4 bytes */

/* A cursor over count bytes at the address, or an empty one. */
struct cursor cursor_at(const struct memory_copy *copy, uint64_t address,
                        uint64_t count);

/* Inline: the time to build tables goes by here. */
static inline uint64_t cursor_fixed(struct cursor *cursor, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->overrun = true;
		cursor->at = cursor->end;
		return 0;
	}
	memcpy(&value, cursor->at, bytes);
	cursor->at += bytes;
	return value;
}

static inline uint64_t cursor_leb128(struct cursor *cursor, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)cursor_fixed(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return value;
}

static inline uint64_t cursor_unsigned(struct cursor *cursor)
{
	return cursor_leb128(cursor, false);
}

static inline int64_t cursor_signed(struct cursor *cursor)
{
	return (int64_t)cursor_leb128(cursor, true);
}

static inline void cursor_skip(struct cursor *cursor, uint64_t bytes)
{
	if (bytes > (uint64_t)(cursor->end - cursor->at)) {
		cursor->overrun = true;
		cursor->at = cursor->end;
		return;
	}
	cursor->at += bytes;
}

/* An encoded pointer; 0 if there is none. Indirect ones (personality routines) are
 * read over, their target is not needed. */
uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding);

/* A block with its length in front. */
struct cursor cursor_block(struct cursor *cursor);

#endif
