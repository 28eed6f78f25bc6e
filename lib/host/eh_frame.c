// SPDX-License-Identifier: MIT
/*
 * Decoder of .eh_frame (DWARF call frame information) into unwind rows.
 *
 * Source of the format: Linux Standard Base, "Exception Frames". The parts: here
 * the index of an object's functions (.eh_frame_hdr), their entries (FDE) and what
 * those share (CIE); cfa_program.c the instructions in them; unwind_rows.c the
 * rows that come out.
 */
#include "eh_frame.h"

#include <string.h>

#include "cfa_program.h"

struct cie {
	uint64_t address; /* 0: none was read yet */
	struct cfa_units units;
	bool has_augmentation;
	struct cursor instructions;
};

struct decoder {
	const struct memory_copy *frames;
	uint64_t object_start;
	struct row_list *list;
	struct cie cie; /* the last one: functions share them */
	struct cfa_state initial;
};

/* A cursor over the CIE or FDE at the address, behind its length. */
static struct cursor entry_at(const struct memory_copy *frames,
                              uint64_t address)
{
	struct cursor head = cursor_at(frames, address, 4);
	uint64_t bytes = cursor_fixed(&head, 4);

	if (head.overrun || bytes < 8 || bytes == UINT32_MAX)
		bytes = UINT64_MAX;
	return cursor_at(frames, address + 4, bytes);
}

static bool parse_augmentation(struct cie *cie, const char *letter,
                               struct cursor data)
{
	for (; *letter; letter++) {
		if (*letter == 'R')
			cie->units.pointer_encoding =
				(uint8_t)cursor_fixed(&data, 1);
		else if (*letter == 'P')
			cursor_pointer(&data, (uint8_t)cursor_fixed(&data, 1));
		else if (*letter == 'L')
			cursor_skip(&data, 1);
		else if (*letter == 'S')
			cie->units.is_signal = true;
		else if (*letter != 'B') /* aarch64: which key signs */
			return false;
	}
	return true;
}

static bool parse_cie(const struct memory_copy *frames, uint64_t address,
                      struct cie *cie)
{
	struct cursor cursor = entry_at(frames, address), data;
	const char *augmentation;
	uint64_t length;
	uint8_t version;

	memset(cie, 0, sizeof(*cie));
	/* A CIE's id; an FDE has a pointer there. */
	if (cursor_fixed(&cursor, 4) != 0)
		return false;
	version = (uint8_t)cursor_fixed(&cursor, 1);
	if (version != 1 && version != 3)
		return false;
	augmentation = (const char *)cursor.at;
	while (cursor_fixed(&cursor, 1))
		;
	cie->units.code_align = cursor_unsigned(&cursor);
	cie->units.data_align = cursor_signed(&cursor);
	if (version == 1)
		cursor_skip(&cursor, 1);
	else
		cursor_unsigned(&cursor);
	if (cursor.overrun || (*augmentation && *augmentation != 'z'))
		return false;
	if (*augmentation == 'z') {
		length = cursor_unsigned(&cursor);
		data = cursor;
		cursor_skip(&cursor, length);
		cie->has_augmentation = true;
		if (!parse_augmentation(cie, augmentation + 1, data))
			return false;
	}
	cie->instructions = cursor;
	cie->address = address;
	return !cursor.overrun;
}

static bool use_cie(struct decoder *decoder, uint64_t address)
{
	if (decoder->cie.address == address)
		return true;
	if (!parse_cie(decoder->frames, address, &decoder->cie))
		return false;
	cfa_run_initial(&decoder->cie.units, decoder->cie.instructions,
	                &decoder->initial);
	return true;
}

/* Row addresses have 32 bits. */
static bool is_usable(const struct cfa_function *function)
{
	return function->start >= function->object_start &&
	       function->end >= function->start &&
	       function->end - function->object_start <= UINT32_MAX;
}

/* One function. Returns its first address behind it, 0 if it is unusable. */
static uint64_t decode_fde(struct decoder *decoder, uint64_t address)
{
	struct cursor cursor = entry_at(decoder->frames, address);
	uint64_t cie_distance = cursor_fixed(&cursor, 4);
	const struct cie *cie = &decoder->cie;
	uint8_t encoding;
	struct cfa_function function = {
		.units = &cie->units,
		.initial = &decoder->initial,
		.object_start = decoder->object_start,
	};

	if (cursor.overrun || !cie_distance ||
	    !use_cie(decoder, address + 4 - cie_distance))
		return 0;
	encoding = cie->units.pointer_encoding;
	function.start = cursor_pointer(&cursor, encoding);
	function.end = function.start +
	               cursor_pointer(&cursor, encoding & ENCODING_FORM_MASK);
	if (!is_usable(&function))
		return 0;
	if (cie->has_augmentation)
		cursor_skip(&cursor, cursor_unsigned(&cursor));
	cfa_run_function(&function, cursor, decoder->list);
	return function.end;
}

/* From here on no function is known: there is none, or its entry is unusable. */
static void append_gap(struct decoder *decoder, uint64_t address)
{
	const struct unwind_rule gap = {.flags = UNWIND_NO_RULE |
	                                         UNWIND_FUNCTION};
	uint64_t offset = address - decoder->object_start;

	if (offset <= UINT32_MAX)
		row_list_append(decoder->list, (uint32_t)offset, &gap);
}

/* ---- .eh_frame_hdr -------------------------------------------------------- */

struct search_table {
	struct cursor cursor; /* at the first entry */
	uint64_t header;      /* address that the entries are relative to */
	uint64_t count;
	uint64_t frames; /* address of .eh_frame */
};

static bool open_table(const struct memory_copy *header,
                       struct search_table *table)
{
	struct cursor cursor =
		cursor_at(header, header->address, header->count);
	uint8_t version = (uint8_t)cursor_fixed(&cursor, 1);
	uint8_t frame_encoding = (uint8_t)cursor_fixed(&cursor, 1);
	uint8_t count_encoding = (uint8_t)cursor_fixed(&cursor, 1);
	uint8_t table_encoding = (uint8_t)cursor_fixed(&cursor, 1);

	table->header = header->address;
	table->frames = cursor_pointer(&cursor, frame_encoding);
	table->count = cursor_pointer(&cursor, count_encoding);
	table->cursor = cursor;
	return version == 1 && table_encoding == ENCODING_TABLE &&
	       !cursor.overrun && table->frames;
}

/* The next function and its frame information. */
static bool next_entry(struct search_table *table, uint64_t *function,
                       uint64_t *fde)
{
	if (!table->count--)
		return false;
	*function = table->header +
	            (uint64_t)(int32_t)cursor_fixed(&table->cursor, 4);
	*fde = table->header +
	       (uint64_t)(int32_t)cursor_fixed(&table->cursor, 4);
	return !table->cursor.overrun;
}

bool eh_frame_locate(const struct memory_copy *header, uint64_t *start,
                     uint64_t *last)
{
	struct search_table table;
	uint64_t function, fde;

	if (!open_table(header, &table))
		return false;
	*start = table.frames;
	*last = 0;
	while (next_entry(&table, &function, &fde))
		if (fde > *last)
			*last = fde;
	return *last > *start;
}

uint64_t eh_frame_entry_bytes(const uint8_t head[4])
{
	uint32_t bytes;

	memcpy(&bytes, head, sizeof(bytes));
	return bytes == UINT32_MAX ? 0 : (uint64_t)bytes + 4;
}

static void decode_all(struct decoder *decoder, struct search_table *table)
{
	uint64_t function, fde, end = 0;

	while (!row_list_out_of_memory(decoder->list) &&
	       next_entry(table, &function, &fde)) {
		if (end && end < function)
			append_gap(decoder, end);
		end = decode_fde(decoder, fde);
		if (!end)
			append_gap(decoder, function);
	}
	if (end)
		append_gap(decoder, end);
}

struct unwind_rows *eh_frame_decode(const struct memory_copy *header,
                                    const struct memory_copy *frames,
                                    uint64_t object_start, bool *out_of_memory)
{
	struct decoder decoder = {.frames = frames,
	                          .object_start = object_start,
	                          .list = row_list_open()};
	struct search_table table;

	if (decoder.list && open_table(header, &table))
		decode_all(&decoder, &table);
	return row_list_close(decoder.list, out_of_memory);
}
