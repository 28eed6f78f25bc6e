// SPDX-License-Identifier: MIT
/*
 * Decoder of .eh_frame (DWARF call frame information) into unwind rows.
 *
 * Source of the format: Linux Standard Base, "Exception Frames"; DWARF 5,
 * section 6.4. Only what compilers emit is expressed in rules; anything else
 * becomes UNWIND_NO_RULE.
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
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
};

#define OP_DEREF 0x06
#define OP_BREG0 0x70 /* register 0 + signed offset, up to register 31 */

#define REMEMBERED_MAX 16
/* The largest objects seen have some 2,000. What is beyond that becomes rule
 * 0, which is none. */
#define RULES_MAX  ((1u << 14) - 1)
#define RULE_SLOTS (1u << 15)

/* Bytes of one CIE, FDE or expression; reading past the end gives zeroes and
 * sets overrun. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t displacement; /* where they were, less where they are */
	bool overrun;
};

struct cie {
	uint64_t address; /* 0: none was read yet */
	uint64_t code_align;
	int64_t data_align;
	uint8_t fde_encoding;
	bool has_augmentation;
	bool is_signal;
	struct cursor instructions;
};

/* What holds at one point of a function. */
struct state {
	struct unwind_rule rule;
	bool return_address_moved; /* not where it is by the CPU's nature: no
	                            * rule can say that */
};

/* The rows while they grow. */
struct row_list {
	struct unwind_rows *rows;
	size_t row_capacity, rule_capacity;
	uint16_t last_rule;
	uint16_t slots[RULE_SLOTS]; /* number of a rule + 1, by its hash */
	bool out_of_memory;
};

struct decoder {
	const struct memory_copy *frames;
	uint64_t object_start;
	struct row_list *list;
	struct cie cie; /* the last one: functions share them */
	struct state initial;
};

struct program {
	const struct cie *cie;
	uint64_t location;
	uint64_t object_start;
	struct state state;
	const struct state *initial; /* NULL while the CIE's own runs */
	struct state remembered[REMEMBERED_MAX];
	unsigned int remembered_count;
	struct row_list *list; /* NULL while the CIE's own runs */
	bool function_start;   /* the next row is the function's first */
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
	uint64_t position = (uint64_t)cursor->at + cursor->displacement;
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

/* A cursor over count bytes at the address, or an empty one. */
static struct cursor cursor_at(const struct memory_copy *copy, uint64_t address,
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

/* A cursor over the CIE or FDE at the address, behind its length. */
static struct cursor entry_at(const struct memory_copy *frames,
                              uint64_t address)
{
	struct cursor head = cursor_at(frames, address, 4);
	uint64_t bytes = read_fixed(&head, 4);

	if (head.overrun || bytes < 8 || bytes == UINT32_MAX)
		bytes = UINT64_MAX;
	return cursor_at(frames, address + 4, bytes);
}

static bool parse_augmentation(struct cie *cie, const char *letter,
                               struct cursor data)
{
	for (; *letter; letter++) {
		if (*letter == 'R')
			cie->fde_encoding = (uint8_t)read_fixed(&data, 1);
		else if (*letter == 'P')
			read_pointer(&data, (uint8_t)read_fixed(&data, 1));
		else if (*letter == 'L')
			skip(&data, 1);
		else if (*letter == 'S')
			cie->is_signal = true;
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
	if (read_fixed(&cursor, 4) != 0) /* a CIE's id; an FDE has a pointer */
		return false;
	version = (uint8_t)read_fixed(&cursor, 1);
	if (version != 1 && version != 3)
		return false;
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
		return false;
	if (*augmentation == 'z') {
		length = read_unsigned(&cursor);
		data = cursor;
		skip(&cursor, length);
		cie->has_augmentation = true;
		if (!parse_augmentation(cie, augmentation + 1, data))
			return false;
	}
	cie->instructions = cursor;
	cie->address = address;
	return !cursor.overrun;
}

/* ---- rows ----------------------------------------------------------------- */

/* The array with room for one more; NULL: out of memory, it stays as it was. */
static void *grow(void *array, size_t count, size_t *capacity, size_t first,
                  size_t bytes)
{
	size_t wanted = *capacity ? 2 * *capacity : first;
	void *grown;

	if (count < *capacity)
		return array;
	grown = realloc(array, wanted * bytes);
	if (grown)
		*capacity = wanted;
	return grown;
}

static bool has_room_for_rule(struct row_list *list)
{
	struct unwind_rows *rows = list->rows;
	struct unwind_rule *rules =
		grow(rows->rules, rows->rule_count, &list->rule_capacity, 64,
	             sizeof(*rules));

	if (rules)
		rows->rules = rules;
	return rules;
}

static bool has_room_for_row(struct row_list *list)
{
	struct unwind_rows *rows = list->rows;
	size_t capacity = list->row_capacity;
	uint32_t *ips =
		grow(rows->ips, rows->count, &capacity, 1024, sizeof(*ips));
	uint16_t *numbers;

	if (!ips)
		return false;
	rows->ips = ips;
	numbers = grow(rows->rule_numbers, rows->count, &list->row_capacity,
	               1024, sizeof(*numbers));
	if (numbers)
		rows->rule_numbers = numbers;
	return numbers;
}

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	const uint8_t *bytes = (const uint8_t *)rule;
	uint32_t hash = 2166136261u;
	size_t i;

	for (i = 0; i < sizeof(*rule); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash ^ hash >> 15;
}

/* Number of the rule, which is added if it is new. */
static uint16_t intern_rule(struct row_list *list,
                            const struct unwind_rule *rule)
{
	struct unwind_rows *rows = list->rows;
	uint32_t slot = hash_rule(rule) % RULE_SLOTS;

	if (rows->rule_count &&
	    !memcmp(&rows->rules[list->last_rule], rule, sizeof(*rule)))
		return list->last_rule;
	for (; list->slots[slot]; slot = (slot + 1) % RULE_SLOTS)
		if (!memcmp(&rows->rules[list->slots[slot] - 1], rule,
		            sizeof(*rule)))
			return list->last_rule =
			               (uint16_t)(list->slots[slot] - 1);
	if (rows->rule_count == RULES_MAX)
		return 0;
	if (!has_room_for_rule(list)) {
		list->out_of_memory = true;
		return 0;
	}
	rows->rules[rows->rule_count++] = *rule;
	list->slots[slot] = (uint16_t)rows->rule_count;
	return list->last_rule = (uint16_t)(rows->rule_count - 1);
}

static bool append_ip(struct row_list *list, uint32_t ip, uint16_t rule)
{
	struct unwind_rows *rows = list->rows;

	if (!has_room_for_row(list))
		return false;
	rows->ips[rows->count] = ip;
	rows->rule_numbers[rows->count++] = rule;
	return true;
}

static void append_row(struct row_list *list, uint32_t ip,
                       struct unwind_rule *rule)
{
	struct unwind_rows *rows = list->rows;
	size_t last = rows->count - 1;

	/* A later rule for the same address replaces the earlier one. */
	if (rows->count && rows->ips[last] == ip) {
		rule->flags |= rows->rules[rows->rule_numbers[last]].flags &
		               UNWIND_FUNCTION;
		rows->rule_numbers[last] = intern_rule(list, rule);
	} else if (!append_ip(list, ip, intern_rule(list, rule))) {
		list->out_of_memory = true;
	}
}

static void emit_row(struct program *program)
{
	struct unwind_rule rule = program->state.rule;

	if (!program->list)
		return;
	if (program->function_start)
		rule.flags |= UNWIND_FUNCTION;
	if (program->cie->is_signal)
		rule.flags |= UNWIND_SIGNAL;
	if (program->state.return_address_moved)
		rule.flags |= UNWIND_NO_RULE;
	program->function_start = false;
	append_row(program->list,
	           (uint32_t)(program->location - program->object_start),
	           &rule);
}

static void advance(struct program *program, uint64_t delta)
{
	emit_row(program);
	program->location += delta * program->cie->code_align;
}

static void set_saved(struct state *state, uint64_t dwarf, int64_t offset)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (saved < 0) {
		/* Only who goes on elsewhere by __builtin_eh_return() saves
		 * the registers in which it hands something over. */
		if (dwarf == CPU_DWARF_EH_DATA)
			state->rule.flags |= UNWIND_SWITCH;
		if (dwarf == CPU_DWARF_RETURN_ADDRESS)
			state->return_address_moved =
				offset != CPU_RETURN_ADDRESS_OFFSET;
		return;
	}
	if (offset % 8 || offset / 8 <= INT16_MIN || offset / 8 > INT16_MAX)
		state->rule.flags |= UNWIND_NO_RULE;
	else
		state->rule.saved[saved] = (int16_t)(offset / 8);
}

static void set_same(struct state *state, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (saved >= 0)
		state->rule.saved[saved] = UNWIND_SAVED_SAME;
}

static void set_undefined(struct state *state, uint64_t dwarf)
{
	if (dwarf == CPU_DWARF_RETURN_ADDRESS)
		state->rule.flags |= UNWIND_OUTERMOST;
	else
		set_same(state, dwarf);
}

/* Back to what the CIE says. */
static void restore_saved(struct program *program, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (!program->initial)
		return;
	if (saved >= 0)
		program->state.rule.saved[saved] =
			program->initial->rule.saved[saved];
	else if (dwarf == CPU_DWARF_RETURN_ADDRESS)
		program->state.return_address_moved =
			program->initial->return_address_moved;
}

static void set_cfa_register(struct state *state, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	state->rule.flags &=
		(uint8_t) ~(UNWIND_NO_RULE | UNWIND_PLT | UNWIND_CFA_LOAD);
	if (dwarf == CPU_DWARF_SP)
		state->rule.cfa_register = SAVED_COUNT;
	else if (saved >= 0)
		state->rule.cfa_register = (uint8_t)saved;
	else
		state->rule.flags |= UNWIND_NO_RULE;
}

static void set_cfa_offset(struct state *state, int64_t offset)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		state->rule.flags |= UNWIND_NO_RULE;
	state->rule.cfa_offset = (int32_t)offset;
}

/*
 * Two shapes occur: `breg(r) n, deref` in functions that align their stack,
 * and the linker's rule for PLT stubs, `breg7 8, breg16 0, …`, in which the
 * CFA moves by 8 behind the push of each 16 byte stub.
 */
static void set_cfa_expression(struct state *state, struct cursor expression)
{
	uint8_t opcode = (uint8_t)read_fixed(&expression, 1);
	int64_t offset;
	uint8_t next;

	if (opcode < OP_BREG0 || opcode > OP_BREG0 + 31) {
		state->rule.flags |= UNWIND_NO_RULE;
		return;
	}
	offset = read_signed(&expression);
	next = (uint8_t)read_fixed(&expression, 1);
	set_cfa_register(state, opcode - OP_BREG0);
	set_cfa_offset(state, offset);
	if (next == OP_DEREF && expression.at == expression.end &&
	    !expression.overrun)
		state->rule.flags |= UNWIND_CFA_LOAD;
	else if (opcode == OP_BREG0 + CPU_DWARF_SP && offset == 8 &&
	         next == OP_BREG0 + CPU_DWARF_RETURN_ADDRESS)
		state->rule.flags |= UNWIND_PLT;
	else
		state->rule.flags |= UNWIND_NO_RULE;
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
	struct state *state = &program->state;
	int64_t align = program->cie->data_align;
	uint64_t dwarf;

	switch (opcode) {
	case CFA_OFFSET_EXTENDED:
		dwarf = read_unsigned(cursor);
		set_saved(state, dwarf, (int64_t)read_unsigned(cursor) * align);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		dwarf = read_unsigned(cursor);
		set_saved(state, dwarf, read_signed(cursor) * align);
		break;
	case CFA_RESTORE_EXTENDED:
		restore_saved(program, read_unsigned(cursor));
		break;
	case CFA_UNDEFINED:
		set_undefined(state, read_unsigned(cursor));
		break;
	case CFA_SAME_VALUE:
		set_same(state, read_unsigned(cursor));
		break;
	case CFA_DEF_CFA:
		set_cfa_register(state, read_unsigned(cursor));
		set_cfa_offset(state, (int64_t)read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_SF:
		set_cfa_register(state, read_unsigned(cursor));
		set_cfa_offset(state, read_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_register(state, read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET:
		set_cfa_offset(state, (int64_t)read_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		set_cfa_offset(state, read_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(state, read_block(cursor));
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
	case CFA_AARCH64_NEGATE_RA_STATE:
		/* A signed return address; the step takes signatures off. */
		break;
	default:
		state->rule.flags |= UNWIND_NO_RULE;
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
		set_saved(&program->state, low,
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
				program->state;
		break;
	case CFA_RESTORE_STATE:
		if (program->remembered_count)
			program->state = program->remembered
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

static void run_initial(const struct cie *cie, struct state *state)
{
	struct program program;
	size_t i;

	memset(&program, 0, sizeof(program));
	program.cie = cie;
	for (i = 0; i < SAVED_COUNT; i++)
		program.state.rule.saved[i] = UNWIND_SAVED_SAME;
	run_program(&program, cie->instructions);
	*state = program.state;
}

static bool use_cie(struct decoder *decoder, uint64_t address)
{
	if (decoder->cie.address == address)
		return true;
	if (!parse_cie(decoder->frames, address, &decoder->cie))
		return false;
	run_initial(&decoder->cie, &decoder->initial);
	return true;
}

/* One function. *end gets its first address behind it, 0 if it is unusable. */
static void decode_fde(struct decoder *decoder, uint64_t address, uint64_t *end)
{
	struct cursor cursor = entry_at(decoder->frames, address);
	uint64_t cie_distance = read_fixed(&cursor, 4);
	const struct cie *cie = &decoder->cie;
	struct program program;

	*end = 0;
	if (cursor.overrun || !cie_distance ||
	    !use_cie(decoder, address + 4 - cie_distance))
		return;
	program.cie = cie;
	program.object_start = decoder->object_start;
	program.state = decoder->initial;
	program.initial = &decoder->initial;
	program.remembered_count = 0;
	program.list = decoder->list;
	program.function_start = true;
	program.location = read_pointer(&cursor, cie->fde_encoding);
	*end = program.location +
	       read_pointer(&cursor, cie->fde_encoding & ENCODING_FORM_MASK);
	if (program.location < decoder->object_start) {
		*end = 0;
		return;
	}
	if (cie->has_augmentation)
		skip(&cursor, read_unsigned(&cursor));
	run_program(&program, cursor);
	if (program.location < *end)
		emit_row(&program);
}

/* Marks where a function ends and the next does not follow at once. */
static void append_gap(struct decoder *decoder, uint64_t end)
{
	struct unwind_rule gap;

	memset(&gap, 0, sizeof(gap));
	gap.flags = UNWIND_NO_RULE | UNWIND_FUNCTION;
	append_row(decoder->list, (uint32_t)(end - decoder->object_start),
	           &gap);
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
	uint8_t version = (uint8_t)read_fixed(&cursor, 1);
	uint8_t frame_encoding = (uint8_t)read_fixed(&cursor, 1);
	uint8_t count_encoding = (uint8_t)read_fixed(&cursor, 1);
	uint8_t table_encoding = (uint8_t)read_fixed(&cursor, 1);

	table->header = header->address;
	table->frames = read_pointer(&cursor, frame_encoding);
	table->count = read_pointer(&cursor, count_encoding);
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
	            (uint64_t)(int32_t)read_fixed(&table->cursor, 4);
	*fde = table->header + (uint64_t)(int32_t)read_fixed(&table->cursor, 4);
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

static void fit(struct unwind_rows *rows)
{
	void *fitted = realloc(rows->ips, rows->count * sizeof(*rows->ips) + 1);

	if (fitted)
		rows->ips = fitted;
	fitted = realloc(rows->rule_numbers,
	                 rows->count * sizeof(*rows->rule_numbers) + 1);
	if (fitted)
		rows->rule_numbers = fitted;
	fitted = realloc(rows->rules,
	                 rows->rule_count * sizeof(*rows->rules) + 1);
	if (fitted)
		rows->rules = fitted;
}

static void decode_all(struct decoder *decoder, struct search_table *table)
{
	const struct unwind_rule none = {.flags = UNWIND_NO_RULE};
	uint64_t function, fde, end = 0;

	intern_rule(decoder->list, &none);
	while (!decoder->list->out_of_memory &&
	       next_entry(table, &function, &fde)) {
		if (end && end < function)
			append_gap(decoder, end);
		decode_fde(decoder, fde, &end);
	}
	if (end)
		append_gap(decoder, end);
}

void unwind_rows_free(struct unwind_rows *rows)
{
	if (!rows)
		return;
	free(rows->ips);
	free(rows->rule_numbers);
	free(rows->rules);
	free(rows);
}

struct unwind_rows *eh_frame_decode(const struct memory_copy *header,
                                    const struct memory_copy *frames,
                                    uint64_t object_start, bool *out_of_memory)
{
	struct row_list *list = calloc(1, sizeof(*list));
	struct decoder decoder = {
		.frames = frames, .object_start = object_start, .list = list};
	struct unwind_rows *rows = calloc(1, sizeof(*rows));
	struct search_table table;

	*out_of_memory = !list || !rows;
	if (!*out_of_memory && open_table(header, &table)) {
		list->rows = rows;
		decode_all(&decoder, &table);
		*out_of_memory = list->out_of_memory;
	}
	free(list);
	if (*out_of_memory || !rows->count) {
		unwind_rows_free(rows);
		return NULL;
	}
	fit(rows);
	return rows;
}
