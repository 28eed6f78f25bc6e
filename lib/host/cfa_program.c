// SPDX-License-Identifier: MIT
/*
 * Call frame programs; see cfa_program.h. Source of the instructions: DWARF 5,
 * section 6.4.2. Only what compilers emit is expressed in rules; anything else
 * becomes UNWIND_NO_RULE.
 */
#include "cfa_program.h"

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

/* A program while it runs. */
struct program {
	const struct cfa_units *units;
	uint64_t location, end; /* addresses */
	uint64_t object_start;
	struct cfa_state state;
	const struct cfa_state *initial; /* NULL while the CIE's own runs */
	struct cfa_state remembered[REMEMBERED_MAX];
	unsigned int remembered_count;
	struct row_list *list; /* NULL while the CIE's own runs */
	bool function_start;   /* the next row is the function's first */
};

static void emit_row(struct program *program)
{
	struct unwind_rule rule = program->state.rule;

	if (!program->list || program->location >= program->end)
		return;
	if (program->function_start)
		rule.flags |= UNWIND_FUNCTION;
	if (program->units->is_signal)
		rule.flags |= UNWIND_SIGNAL;
	if (program->state.return_address_moved)
		rule.flags |= UNWIND_NO_RULE;
	program->function_start = false;
	row_list_append(program->list,
	                (uint32_t)(program->location - program->object_start),
	                &rule);
}

static void advance(struct program *program, uint64_t delta)
{
	emit_row(program);
	program->location += delta * program->units->code_align;
}

static void set_saved(struct cfa_state *state, uint64_t dwarf, int64_t offset)
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

static void set_same(struct cfa_state *state, uint64_t dwarf)
{
	int saved = cpu_saved_of_dwarf(dwarf);

	if (saved >= 0)
		state->rule.saved[saved] = UNWIND_SAVED_SAME;
}

static void set_undefined(struct cfa_state *state, uint64_t dwarf)
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

static void set_cfa_register(struct cfa_state *state, uint64_t dwarf)
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

static void set_cfa_offset(struct cfa_state *state, int64_t offset)
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
static void set_cfa_expression(struct cfa_state *state,
                               struct cursor expression)
{
	uint8_t opcode = (uint8_t)cursor_fixed(&expression, 1);
	int64_t offset;
	uint8_t next;

	if (opcode < OP_BREG0 || opcode > OP_BREG0 + 31) {
		state->rule.flags |= UNWIND_NO_RULE;
		return;
	}
	offset = cursor_signed(&expression);
	next = (uint8_t)cursor_fixed(&expression, 1);
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

static void set_rule(struct program *program, uint8_t opcode,
                     struct cursor *cursor)
{
	struct cfa_state *state = &program->state;
	int64_t align = program->units->data_align;
	uint64_t dwarf;

	switch (opcode) {
	case CFA_OFFSET_EXTENDED:
		dwarf = cursor_unsigned(cursor);
		set_saved(state, dwarf,
		          (int64_t)cursor_unsigned(cursor) * align);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		dwarf = cursor_unsigned(cursor);
		set_saved(state, dwarf, cursor_signed(cursor) * align);
		break;
	case CFA_RESTORE_EXTENDED:
		restore_saved(program, cursor_unsigned(cursor));
		break;
	case CFA_UNDEFINED:
		set_undefined(state, cursor_unsigned(cursor));
		break;
	case CFA_SAME_VALUE:
		set_same(state, cursor_unsigned(cursor));
		break;
	case CFA_DEF_CFA:
		set_cfa_register(state, cursor_unsigned(cursor));
		set_cfa_offset(state, (int64_t)cursor_unsigned(cursor));
		break;
	case CFA_DEF_CFA_SF:
		set_cfa_register(state, cursor_unsigned(cursor));
		set_cfa_offset(state, cursor_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_register(state, cursor_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET:
		set_cfa_offset(state, (int64_t)cursor_unsigned(cursor));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		set_cfa_offset(state, cursor_signed(cursor) * align);
		break;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(state, cursor_block(cursor));
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		/* Signal trampolines only; those are unwound another way. */
		cursor_unsigned(cursor);
		cursor_block(cursor);
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor_unsigned(cursor);
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
	uint8_t opcode = (uint8_t)cursor_fixed(cursor, 1);
	uint8_t low = opcode & 0x3f;

	switch (opcode >> 6) {
	case CFA_ADVANCE_LOC:
		advance(program, low);
		return;
	case CFA_OFFSET:
		set_saved(&program->state, low,
		          (int64_t)cursor_unsigned(cursor) *
		                  program->units->data_align);
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
		program->location = cursor_pointer(
			cursor, program->units->pointer_encoding);
		break;
	case CFA_ADVANCE_LOC1:
		advance(program, cursor_fixed(cursor, 1));
		break;
	case CFA_ADVANCE_LOC2:
		advance(program, cursor_fixed(cursor, 2));
		break;
	case CFA_ADVANCE_LOC4:
		advance(program, cursor_fixed(cursor, 4));
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

void cfa_run_initial(const struct cfa_units *units, struct cursor instructions,
                     struct cfa_state *state)
{
	struct program program = {.units = units};
	size_t i;

	for (i = 0; i < SAVED_COUNT; i++)
		program.state.rule.saved[i] = UNWIND_SAVED_SAME;
	run_program(&program, instructions);
	*state = program.state;
}

void cfa_run_function(const struct cfa_function *function,
                      struct cursor instructions, struct row_list *list)
{
	struct program program;

	/* Not all of it: the remembered states are many. */
	program.units = function->units;
	program.object_start = function->object_start;
	program.location = function->start;
	program.end = function->end;
	program.state = *function->initial;
	program.initial = function->initial;
	program.remembered_count = 0;
	program.list = list;
	program.function_start = true;
	run_program(&program, instructions);
	emit_row(&program);
}
