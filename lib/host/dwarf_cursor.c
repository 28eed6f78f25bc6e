// SPDX-License-Identifier: MIT
/* Cursor over DWARF; see dwarf_cursor.h. */
#include "dwarf_cursor.h"

uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding)
{
	uint64_t position = (uint64_t)cursor->at + cursor->displacement;
	uint64_t value;

	if (encoding == ENCODING_OMIT)
		return 0;
	switch (encoding & ENCODING_FORM_MASK) {
	case 0x00:
	case 0x04:
	case 0x0c:
		value = cursor_fixed(cursor, 8);
		break;
	case 0x01:
		value = cursor_unsigned(cursor);
		break;
	case 0x09:
		value = (uint64_t)cursor_signed(cursor);
		break;
	case 0x02:
		value = cursor_fixed(cursor, 2);
		break;
	case 0x0a:
		value = (uint64_t)(int16_t)cursor_fixed(cursor, 2);
		break;
	case 0x03:
		value = cursor_fixed(cursor, 4);
		break;
	case 0x0b:
		value = (uint64_t)(int32_t)cursor_fixed(cursor, 4);
		break;
	default:
		cursor->overrun = true;
		return 0;
	}
	if (value && (encoding & ENCODING_BASE_MASK) == ENCODING_PC_RELATIVE)
		value += position;
	return value;
}

struct cursor cursor_at(const struct memory_copy *copy, uint64_t address,
                        uint64_t count)
{
	uint64_t offset = address - copy->address;
	struct cursor cursor = {.displacement =
	                                copy->address - (uint64_t)copy->bytes};

	if (offset > copy->count || count > copy->count - offset) {
		cursor.at = cursor.end = copy->bytes;
		cursor.overrun = true;
		return cursor;
	}
	cursor.at = copy->bytes + offset;
	cursor.end = cursor.at + count;
	return cursor;
}

struct cursor cursor_block(struct cursor *cursor)
{
	uint64_t length = cursor_unsigned(cursor);
	struct cursor block = *cursor;

	cursor_skip(cursor, length);
	block.end = cursor->at;
	return block;
}
