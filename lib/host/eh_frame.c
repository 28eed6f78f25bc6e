// SPDX-License-Identifier: MIT
/*
 * Decoder of .eh_frame (DWARF call frame information) into unwind rows.
 *
 * Source of the format: Linux Standard Base, "Exception Frames"; DWARF 5,
 * section 6.4. Only what compilers emit for x86-64 is expressed in rows; any
 * other rule becomes UNWIND_NO_RULE.
 */
#include "eh_frame.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Pointer encodings: low half the format, then what it is relative to. */
#define ENCODING_OMIT        0xff
#define ENCODING_INDIRECT    0x80
#define ENCODING_BASE_MASK   0x70
#define ENCODING_PC_RELATIVE 0x10
#define ENCODING_FORM_MASK   0x0f
#define ENCODING_TABLE       0x3b /* relative to the header, signed 4 bytes */

/* Call frame instructions with an operand in the low six bits. */
#define CFA_ADVANCE_LOC 1
#define CFA_OFFSET      2
#define CFA_RESTORE     3

enum cfa_opcode {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
};

#define OP_DEREF 0x06
#define OP_BREG0 0x70 /* register 0 + signed offset, up to register 31 */

#define REMEMBERED_MAX 16

/* Bytes of one CIE, FDE or expression; reading past the end gives zeroes and
 * sets overrun. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool overrun;
};

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t fde_encoding;
	bool has_augmentation;
	bool is_signal;
	struct cursor instructions;
};

/* The rules at one point of a function: a row before it has an address. */
struct rule {
	struct unwind_row row;
	bool return_address_moved; /* not at CFA - 8: no row can say that */
};

struct program {
	const struct cie *cie;
	uint64_t location;
	uint64_t object_start;
	struct rule rule;
	const struct rule *initial; /* NULL while the CIE's own runs */
	struct rule remembered[REMEMBERED_MAX];
	unsigned int remembered_count;
	struct unwind_rows *rows; /* NULL while the CIE's own runs */
	bool function_start;      /* the next row is the function's first */
	bool out_of_memory;
};

static uint64_t read_fixed(struct cursor *cursor, size_t bytes)
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

static uint64_t read_leb128(struct cursor *cursor, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)read_fixed(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return value;
}

static uint64_t read_unsigned(struct cursor *cursor)
{
	return read_leb128(cursor, false);
}

static int64_t read_signed(struct cursor *cursor)
{
	return (int64_t)read_leb128(cursor, true);
}

static void skip(struct cursor *cursor, uint64_t bytes)
{
	if (bytes > (uint64_t)(cursor->end - cursor->at)) {
		cursor->overrun = true;
		cursor->at = cursor->end;
		return;
	}
	cursor->at += bytes;
}

/* Reads an encoded pointer. Indirect ones (personality routines) are read
 * over, their target is not needed. */
static uint64_t read_pointer(struct cursor *cursor, uint8_t encoding)
{
	uint64_t position = (uint64_t)cursor->at;
	uint64_t value;

	if (encoding == ENCODING_OMIT)
		return 0;
	switch (encoding & ENCODING_FORM_MASK) {
	case 0x00:
	case 0x04:
	case 0x0c:
		value = read_fixed(cursor, 8);
		break;
	case 0x01:
		value = read_unsigned(cursor);
		break;
	case 0x09:
		value = (uint64_t)read_signed(cursor);
		break;
	case 0x02:
		value = read_fixed(cursor, 2);
		break;
	case 0x0a:
		value = (uint64_t)(int16_t)read_fixed(cursor, 2);
		break;
	case 0x03:
		value = read_fixed(cursor, 4);
		break;
	case 0x0b:
		value = (uint64_t)(int32_t)read_fixed(cursor, 4);
		break;
	default:
		cursor->overrun = true;
		return 0;
	}
	if (value && (encoding & ENCODING_BASE_MASK) == ENCODING_PC_RELATIVE)
		value += position;
	return value;
}

static int parse_cie(const uint8_t *start, struct cie *cie)
{
	struct cursor cursor = {start, start + 4, false};
	struct cursor augmentation_data;
	const char *augmentation, *letter;
	uint64_t length = read_fixed(&cursor, 4);
	uint8_t version;

	memset(cie, 0, sizeof(*cie));
	if (length < 8 || length == UINT32_MAX)
		return -1;
	cursor.end = start + 4 + length;
	if (read_fixed(&cursor, 4) != 0) /* a CIE's id; an FDE has a pointer */
		return -1;
	version = (uint8_t)read_fixed(&cursor, 1);
	if (version != 1 && version != 3)
		return -1;
	augmentation = (const char *)cursor.at;
	while (read_fixed(&cursor, 1))
		;
	cie->code_align = read_unsigned(&cursor);
	cie->data_align = read_signed(&cursor);
	if (version == 1)
		skip(&cursor, 1);
	else
		read_unsigned(&cursor);
	if (cursor.overrun || (*augmentation && *augmentation != 'z'))
		return -1;
	if (*augmentation == 'z') {
		length = read_unsigned(&cursor);
		augmentation_data = cursor;
		skip(&cursor, length);
		cie->has_augmentation = true;
		for (letter = augmentation + 1; *letter; letter++) {
			if (*letter == 'R')
				cie->fde_encoding = (uint8_t)read_fixed(
					&augmentation_data, 1);
			else if (*letter == 'P')
				read_pointer(&augmentation_data,
				             (uint8_t)read_fixed(
						     &augmentation_data, 1));
			else if (*letter == 'L')
				skip(&augmentation_data, 1);
			else if (*letter == 'S')
				cie->is_signal = true;
			else
				return -1;
		}
	}
	cie->instructions = cursor;
	return cursor.overrun ? -1 : 0;
}

static int append_row(struct unwind_rows *rows, const struct unwind_row *row)
{
	/* A later rule for the same address replaces the earlier one. */
	if (rows->count && rows->rows[rows->count - 1].ip == row->ip) {
		uint8_t start =
			rows->rows[rows->count - 1].flags & UNWIND_FUNCTION;

		rows->rows[rows->count - 1] = *row;
		rows->rows[rows->count - 1].flags |= start;
		return 0;
	}
	if (rows->count == rows->capacity) {
		size_t capacity = rows->capacity ? rows->capacity * 2 : 1024;
		struct unwind_row *grown =
			realloc(rows->rows, capacity * sizeof(*grown));

		if (!grown)
			return -2;
		rows->rows = grown;
		rows->capacity = capacity;
	}
	rows->rows[rows->count++] = *row;
	return 0;
}

static void emit_row(struct program *program)
{
	struct unwind_row row = program->rule.row;

	if (!program->rows)
		return;
	row.ip = (uint32_t)(program->location - program->object_start);
	if (program->function_start)
		row.flags |= UNWIND_FUNCTION;
	if (program->cie->is_signal)
		row.flags |= UNWIND_SIGNAL;
	if (program->rule.return_address_moved)
		row.flags |= UNWIND_NO_RULE;
	program->function_start = false;
	if (append_row(program->rows, &row))
		program->out_of_memory = true;
}

static void advance(struct program *program, uint64_t delta)
{
	emit_row(program);
	program->location += delta * program->cie->code_align;
}

static void set_saved(struct rule *rule, uint64_t dwarf, int64_t offset)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (dwarf == CPU_DWARF_RETURN_ADDRESS)
		rule->return_address_moved = offset != -8;
	if (saved < 0)
		return;
	if (offset % 8 || offset / 8 <= INT8_MIN || offset / 8 > INT8_MAX)
		rule->row.flags |= UNWIND_NO_RULE;
	else
		rule->row.saved[saved] = (int8_t)(offset / 8);
}

static void set_same(struct rule *rule, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (saved >= 0)
		rule->row.saved[saved] = UNWIND_SAVED_SAME;
}

static void set_undefined(struct rule *rule, uint64_t dwarf)
{
	if (dwarf == CPU_DWARF_RETURN_ADDRESS)
		rule->row.flags |= UNWIND_OUTERMOST;
	else
		set_same(rule, dwarf);
}

/* Back to what the CIE says. */
static void restore_saved(struct program *program, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (!program->initial)
		return;
	if (dwarf == CPU_DWARF_RETURN_ADDRESS)
		program->rule.return_address_moved =
			program->initial->return_address_moved;
	if (saved >= 0)
		program->rule.row.saved[saved] =
			program->initial->row.saved[saved];
}

static void set_cfa_register(struct rule *rule, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	rule->row.flags &=
		(uint8_t) ~(UNWIND_NO_RULE | UNWIND_PLT | UNWIND_CFA_LOAD);
	if (dwarf == CPU_DWARF_SP)
		rule->row.cfa_register = SAVED_COUNT;
	else if (saved >= 0)
		rule->row.cfa_register = (uint8_t)saved;
	else
		rule->row.flags |= UNWIND_NO_RULE;
}

static void set_cfa_offset(struct rule *rule, int64_t offset)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		rule->row.flags |= UNWIND_NO_RULE;
	rule->row.cfa_offset = (int32_t)offset;
}

/*
 * Two shapes occur: `breg(r) n, deref` in functions that align their stack,
 * and the linker's rule for PLT stubs, `breg7 8, breg16 0, …`, in which the
 * CFA moves by 8 behind the push of each 16 byte stub.
 */
static void set_cfa_expression(struct rule *rule, struct cursor expression)
{
	uint8_t opcode = (uint8_t)read_fixed(&expression, 1);
	int64_t offset;
	uint8_t next;

	if (opcode < OP_BREG0 || opcode > OP_BREG0 + 31) {
		rule->row.flags |= UNWIND_NO_RULE;
		return;
	}
	offset = read_signed(&expression);
	next = (uint8_t)read_fixed(&expression, 1);
	set_cfa_register(rule, opcode - OP_BREG0);
	set_cfa_offset(rule, offset);
	if (next == OP_DEREF && expression.at == expression.end &&
	    !expression.overrun)
		rule->row.flags |= UNWIND_CFA_LOAD;
	else if (opcode == OP_BREG0 + CPU_DWARF_SP && offset == 8 &&
	         next == OP_BREG0 + CPU_DWARF_RETURN_ADDRESS)
		rule->row.flags |= UNWIND_PLT;
	else
		rule->row.flags |= UNWIND_NO_RULE;
}

static struct cursor read_block(struct cursor *cursor)
{
	uint64_t length = read_unsigned(cursor);
	struct cursor block = *cursor;

	skip(cursor, length);
	block.end = cursor->at;
	return block;
}

static void set_rule(struct program *program, uint8_t opcode,
                     struct cursor *cursor)
{
	struct rule *rule = &program->rule;
	int64_t align = program->cie->data_align;
	uint64_t dwarf;

	switch (opcode) {
	case CFA_OFFSET_EXTENDED:
		dwarf = read_unsigned(cursor);
		set_saved(rule, dwarf, (int64_t)read_unsigned(cursor) * align);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		dwarf = read_unsigned(cursor);
		set_saved(rule, dwarf, read_signed(cursor) * align);
		break;
	case CFA_RESTORE_EXTENDED:
		restore_saved(program, read_unsigned(cursor));
		break;
	case CFA_UNDEFINED:
		set_undefined(rule, read_unsigned(cursor));
		break;
	case CFA_SAME_VALUE:
		set_same(rule, read_unsigned(cursor));
		break;
	case CFA_DEF_CFA:
		set_cfa_register(rule, read_unsigned(cursor));
		set_cfa_offset(rule, (int64_t)read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_SF:
		set_cfa_register(rule, read_unsigned(cursor));
		set_cfa_offset(rule, read_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_register(rule, read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET:
		set_cfa_offset(rule, (int64_t)read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		set_cfa_offset(rule, read_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(rule, read_block(cursor));
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		/* Signal trampolines only; those are unwound another way. */
		read_unsigned(cursor);
		read_block(cursor);
		break;
	case CFA_GNU_ARGS_SIZE:
		read_unsigned(cursor);
		break;
	default:
		rule->row.flags |= UNWIND_NO_RULE;
		cursor->overrun = true; /* operands unknown: stop here */
	}
}

static void run_instruction(struct program *program, struct cursor *cursor)
{
	uint8_t opcode = (uint8_t)read_fixed(cursor, 1);
	uint8_t low = opcode & 0x3f;

	switch (opcode >> 6) {
	case CFA_ADVANCE_LOC:
		advance(program, low);
		return;
	case CFA_OFFSET:
		set_saved(&program->rule, low,
		          (int64_t)read_unsigned(cursor) *
		                  program->cie->data_align);
		return;
	case CFA_RESTORE:
		restore_saved(program, low);
		return;
	}
	switch (opcode) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		emit_row(program);
		program->location =
			read_pointer(cursor, program->cie->fde_encoding);
		break;
	case CFA_ADVANCE_LOC1:
		advance(program, read_fixed(cursor, 1));
		break;
	case CFA_ADVANCE_LOC2:
		advance(program, read_fixed(cursor, 2));
		break;
	case CFA_ADVANCE_LOC4:
		advance(program, read_fixed(cursor, 4));
		break;
	case CFA_REMEMBER_STATE:
		if (program->remembered_count < REMEMBERED_MAX)
			program->remembered[program->remembered_count++] =
				program->rule;
		break;
	case CFA_RESTORE_STATE:
		if (program->remembered_count)
			program->rule = program->remembered
			                        [--program->remembered_count];
		break;
	default:
		set_rule(program, opcode, cursor);
	}
}

static void run_program(struct program *program, struct cursor cursor)
{
	while (cursor.at < cursor.end && !cursor.overrun)
		run_instruction(program, &cursor);
}

static void initial_rule(const struct cie *cie, struct rule *rule)
{
	struct program program;

	memset(&program, 0, sizeof(program));
	program.cie = cie;
	memset(program.rule.row.saved, UNWIND_SAVED_SAME,
	       sizeof(program.rule.row.saved));
	run_program(&program, cie->instructions);
	*rule = program.rule;
}

/* One function. *end gets its first address behind it. */
static int decode_fde(const uint8_t *start, uint64_t object_start,
                      struct unwind_rows *rows, uint64_t *end)
{
	struct cursor cursor = {start, start + 8, false};
	uint64_t length = read_fixed(&cursor, 4);
	const uint8_t *cie_pointer = cursor.at;
	uint64_t cie_distance = read_fixed(&cursor, 4);
	struct program program;
	struct rule initial;
	struct cie cie;

	*end = 0;
	if (length < 8 || length == UINT32_MAX || !cie_distance ||
	    parse_cie(cie_pointer - cie_distance, &cie))
		return 0;
	cursor.end = start + 4 + length;
	initial_rule(&cie, &initial);
	memset(&program, 0, sizeof(program));
	program.cie = &cie;
	program.object_start = object_start;
	program.rule = initial;
	program.initial = &initial;
	program.rows = rows;
	program.function_start = true;
	program.location = read_pointer(&cursor, cie.fde_encoding);
	*end = program.location +
	       read_pointer(&cursor, cie.fde_encoding & ENCODING_FORM_MASK);
	if (program.location < object_start)
		return 0;
	if (cie.has_augmentation)
		skip(&cursor, read_unsigned(&cursor));
	run_program(&program, cursor);
	if (program.location < *end)
		emit_row(&program);
	return program.out_of_memory ? -2 : 0;
}

/* Marks where a function ends and the next does not follow at once. */
static int append_gap(struct unwind_rows *rows, uint64_t end,
                      uint64_t object_start)
{
	struct unwind_row gap = {.flags = UNWIND_NO_RULE | UNWIND_FUNCTION};

	gap.ip = (uint32_t)(end - object_start);
	return append_row(rows, &gap);
}

int eh_frame_decode(const uint8_t *header, size_t header_bytes,
                    uint64_t object_start, struct unwind_rows *rows)
{
	struct cursor cursor = {header, header + header_bytes, false};
	uint64_t count, i, function, end = 0;
	uint8_t version = (uint8_t)read_fixed(&cursor, 1);
	uint8_t frame_encoding = (uint8_t)read_fixed(&cursor, 1);
	uint8_t count_encoding = (uint8_t)read_fixed(&cursor, 1);
	uint8_t table_encoding = (uint8_t)read_fixed(&cursor, 1);
	int result = 0;

	read_pointer(&cursor, frame_encoding);
	count = read_pointer(&cursor, count_encoding);
	if (version != 1 || table_encoding != ENCODING_TABLE || cursor.overrun)
		return -1;
	for (i = 0; i < count && !result; i++) {
		int32_t location = (int32_t)read_fixed(&cursor, 4);
		int32_t fde = (int32_t)read_fixed(&cursor, 4);

		if (cursor.overrun)
			break;
		function = (uint64_t)header + (uint64_t)(int64_t)location;
		if (end && end < function)
			result = append_gap(rows, end, object_start);
		if (!result)
			result = decode_fde(header + fde, object_start, rows,
			                    &end);
	}
	if (!result && end)
		result = append_gap(rows, end, object_start);
	return result;
}
