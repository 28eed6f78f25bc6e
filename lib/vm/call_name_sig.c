// SPDX-License-Identifier: MIT
/*
 * Call names. Runs in the signal handler, once for each function that is new.
 * All loops are bounded, and each load may fail.
 */
#include "call_name_sig.h"

#include "object_sig.h"

/* How far back a function is loaded before it is called: its arguments are in
 * between. */
#define INSTRUCTIONS_MAX 1000

/* Indices in `a.b.c.d()`. */
#define DEPTH_MAX 8

/* Tables behind a table: inheritance, or an environment. */
#define METATABLES_MAX 4

/* In all tables that one name is looked for in. */
#define NODES_MAX 4096

/* Of a prototype's names. */
#define DEBUG_BYTES_MAX 4096

/* First bytes of the names of a loop's hidden variables. */
#define HIDDEN_NAMES_MAX 7

#define INDEX_NAME       "__index"
#define INDEX_NAME_BYTES 7

/* A call, and what is known of its caller. */
struct call_site {
	const struct vm_layout *layout;
	const struct guest_frame *frame; /* of the called function */
	uint64_t function;               /* the caller */
	uint64_t prototype;              /* its own */
	uint64_t base;                   /* its first slot; 0: not known */
	uint32_t index;                  /* of the call instruction */
	uint32_t call_register;          /* which held the called function */
	uint32_t node_budget;            /* that may still be looked at */
};

/* A value of the VM. type is none of TYPE_* for numbers. */
struct value {
	uint32_t type;
	uint64_t object;
};

/* Where a name is in memory. */
struct text {
	uint64_t address;
	uint32_t bytes;
};

struct instruction {
	uint32_t opcode, a, b, c, d;
};

/* ---- values ------------------------------------------------------------------ */

static bool read_value(const struct vm_layout *layout, uint64_t address,
                       struct value *value)
{
	uint64_t word;

	if (!load_u64(address, &word))
		return false;
	if (layout->gc64) {
		value->type = ~(uint32_t)(word >> SLOT_TAG_SHIFT) & 0x1ffff;
		value->object = word & SLOT_POINTER_MASK;
	} else {
		value->type = ~(uint32_t)(word >> 32);
		value->object = (uint32_t)word;
	}
	return true;
}

static bool read_text(const struct vm_layout *layout, uint64_t string,
                      struct text *text)
{
	text->address = string + layout->string.bytes;
	return is_object(layout, string, TYPE_STRING) &&
	       load_u32(string + layout->string.length, &text->bytes);
}

static bool is_index_name(const struct vm_layout *layout, uint64_t string)
{
	char bytes[INDEX_NAME_BYTES];
	struct text text;

	if (!read_text(layout, string, &text) ||
	    text.bytes != INDEX_NAME_BYTES ||
	    !load_bytes(bytes, text.address, INDEX_NAME_BYTES))
		return false;
	for (int i = 0; i < INDEX_NAME_BYTES; i++)
		if (bytes[i] != INDEX_NAME[i])
			return false;
	return true;
}

/* The value of a string key; 0 stands for "__index". */
static bool find_node(struct call_site *site, uint64_t table, uint64_t key,
                      struct value *value)
{
	const struct vm_layout *layout = site->layout;
	struct value node_key;
	uint64_t node;
	uint32_t mask, i;

	if (!is_object(layout, table, TYPE_TABLE) ||
	    !load_u32(table + layout->object.table.node_mask, &mask) ||
	    mask >= site->node_budget ||
	    !load_reference(layout, table + layout->object.table.nodes, &node))
		return false;
	site->node_budget -= mask;
	for (i = 0; i <= mask; i++, node += NODE_BYTES) {
		if (!read_value(layout, node + NODE_KEY, &node_key))
			return false;
		if (node_key.type != TYPE_STRING ||
		    (key ? node_key.object != key
		         : !is_index_name(layout, node_key.object)))
			continue;
		return read_value(layout, node, value) &&
		       value->type != TYPE_NIL;
	}
	return false;
}

/* As the VM indexes a table, but for functions that do it. */
static bool find_field(struct call_site *site, struct value table, uint64_t key,
                       struct value *value)
{
	const struct vm_layout *layout = site->layout;
	uint64_t metatable;

	for (int i = 0; i <= METATABLES_MAX; i++) {
		if (table.type != TYPE_TABLE)
			return false;
		if (find_node(site, table.object, key, value))
			return true;
		if (!load_reference(layout,
		                    table.object +
		                            layout->object.table.metatable,
		                    &metatable) ||
		    !metatable || !find_node(site, metatable, 0, &table))
			return false;
	}
	return false;
}

/* ---- debug information -------------------------------------------------------- */

/* Reads a number of up to 32 bits, seven of them a byte. */
static bool read_number(uint64_t *at, uint32_t *number)
{
	uint32_t shift;
	uint8_t byte;

	*number = 0;
	for (shift = 0; shift < 32; shift += 7) {
		if (!load_u8((*at)++, &byte))
			return false;
		*number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* From the first byte to what ends the text. */
static bool read_terminated(uint64_t *at, uint64_t end, struct text *text)
{
	uint8_t byte;

	text->address = *at;
	while (*at < end && load_u8((*at)++, &byte))
		if (!byte) {
			text->bytes = (uint32_t)(*at - 1 - text->address);
			return true;
		}
	return false;
}

/* Name of the variable that a register is at an instruction. */
static bool find_variable(const struct call_site *site, uint32_t number,
                          uint32_t index, struct text *text)
{
	const struct vm_layout *layout = site->layout;
	uint32_t start = 0, skipped, length;
	uint64_t at, end;
	uint8_t first;

	if (!load_reference(layout,
	                    site->prototype +
	                            layout->object.prototype.variables,
	                    &at) ||
	    !at)
		return false;
	for (end = at + DEBUG_BYTES_MAX; at < end;) {
		if (!load_u8(at, &first) || !first)
			return false;
		text->bytes = 0;
		if (first < HIDDEN_NAMES_MAX)
			at++;
		else if (!read_terminated(&at, end, text))
			return false;
		if (!read_number(&at, &skipped) || !read_number(&at, &length))
			return false;
		start += skipped;
		if (start > index)
			return false;
		if (index - start < length && number-- == 0)
			return text->bytes > 0;
	}
	return false;
}

static bool find_upvalue_name(const struct call_site *site, uint32_t number,
                              struct text *text)
{
	const struct vm_layout *layout = site->layout;
	uint64_t at, end;

	if (!load_reference(layout,
	                    site->prototype +
	                            layout->object.prototype.upvalue_names,
	                    &at) ||
	    !at)
		return false;
	end = at + DEBUG_BYTES_MAX;
	do
		if (!read_terminated(&at, end, text))
			return false;
	while (number-- > 0);
	return true;
}

/* ---- bytecode ----------------------------------------------------------------- */

static bool read_instruction(const struct call_site *site, uint32_t index,
                             struct instruction *instruction)
{
	uint32_t word;

	if (!load_u32(site->prototype + site->layout->object.prototype.bytes +
	                      UINT64_C(4) * index,
	              &word))
		return false;
	instruction->opcode = word & 0xff;
	instruction->a = (word >> 8) & 0xff;
	instruction->b = word >> 24;
	instruction->c = (word >> 16) & 0xff;
	instruction->d = word >> 16;
	return true;
}

/* Address of the string with a number among the constants; 0: none. */
static uint64_t string_constant(const struct call_site *site, uint32_t number)
{
	const struct vm_layout *layout = site->layout;
	uint64_t constants, string;

	if (!load_reference(layout,
	                    site->prototype +
	                            layout->object.prototype.constants,
	                    &constants) ||
	    !load_reference(layout,
	                    constants - (number + 1) * (layout->gc64
	                                                        ? UINT64_C(8)
	                                                        : UINT64_C(4)),
	                    &string) ||
	    !is_object(layout, string, TYPE_STRING))
		return 0;
	return string;
}

/* The last instruction before index that loads the register. Where others write
 * to it in between, the name that is found does not hold the function. */
static bool find_load(const struct call_site *site, uint32_t loaded,
                      uint32_t *index, struct instruction *instruction)
{
	uint32_t i;

	for (i = 0; i < INSTRUCTIONS_MAX && --*index > 0; i++) {
		if (!read_instruction(site, *index, instruction))
			return false;
		if (instruction->a != loaded)
			continue;
		switch (instruction->opcode) {
		case BYTECODE_MOV:
		case BYTECODE_UGET:
		case BYTECODE_GGET:
		case BYTECODE_TGETS:
			return true;
		}
	}
	return false;
}

static bool read_upvalue(const struct call_site *site, uint32_t number,
                         struct value *value)
{
	const struct vm_layout *layout = site->layout;
	uint64_t reference_bytes = layout->gc64 ? 8 : 4;
	uint64_t upvalue, address;

	return load_reference(layout,
	                      site->function +
	                              layout->object.function.upvalues +
	                              reference_bytes * number,
	                      &upvalue) &&
	       load_reference(layout, upvalue + layout->object.upvalue.value,
	                      &address) &&
	       read_value(layout, address, value);
}

/* Where a value came from: a register that is still on the stack, or an upvalue
 * or a global; and the fields that led from there to what was called. */
struct origin {
	bool is_on_stack;
	uint32_t stack_register;  /* is_on_stack */
	uint32_t index;           /* of the instruction that took it */
	struct instruction first; /* else */
	struct instruction fields[DEPTH_MAX]; /* last one first */
	int field_count;
};

/* Registers below the called function's are still on the stack. */
static bool find_origin(const struct call_site *site, struct origin *origin)
{
	uint32_t wanted = site->call_register;

	origin->index = site->index;
	origin->field_count = 0;
	for (;;) {
		origin->is_on_stack =
			site->base && wanted < site->call_register;
		origin->stack_register = wanted;
		if (origin->is_on_stack)
			return true;
		if (!find_load(site, wanted, &origin->index, &origin->first))
			return false;
		switch (origin->first.opcode) {
		case BYTECODE_MOV:
			wanted = origin->first.d;
			break;
		case BYTECODE_TGETS:
			if (origin->field_count == DEPTH_MAX)
				return false;
			origin->fields[origin->field_count++] = origin->first;
			wanted = origin->first.b;
			break;
		default:
			return true;
		}
	}
}

static bool read_global(struct call_site *site, uint32_t constant,
                        struct value *value, struct text *name)
{
	uint64_t key = string_constant(site, constant);
	struct value environment = {.type = TYPE_TABLE};

	return key &&
	       load_reference(site->layout,
	                      site->function +
	                              site->layout->object.function.environment,
	                      &environment.object) &&
	       find_field(site, environment, key, value) &&
	       read_text(site->layout, key, name);
}

static bool read_field(struct call_site *site, uint32_t constant,
                       struct value *value, struct text *name)
{
	uint64_t key = string_constant(site, constant);

	return key && find_field(site, *value, key, value) &&
	       read_text(site->layout, key, name);
}

static bool read_first(struct call_site *site, const struct origin *origin,
                       struct value *value, struct text *name)
{
	if (origin->is_on_stack) {
		/* A field of a variable without a name has one all the same. */
		if (!find_variable(site, origin->stack_register, origin->index,
		                   name))
			name->bytes = 0;
		return read_value(site->layout,
		                  site->base +
		                          UINT64_C(8) * origin->stack_register,
		                  value);
	}
	if (origin->first.opcode == BYTECODE_GGET)
		return read_global(site, origin->first.d, value, name);
	if (!find_upvalue_name(site, origin->first.d, name))
		name->bytes = 0;
	return read_upvalue(site, origin->first.d, value);
}

/* What the called function's register was loaded from, and its name. */
static bool evaluate(struct call_site *site, struct value *value,
                     struct text *name, bool *is_local)
{
	struct origin origin;

	*is_local = false;
	if (!find_origin(site, &origin) ||
	    !read_first(site, &origin, value, name))
		return false;
	*is_local = origin.is_on_stack && origin.field_count == 0;
	while (origin.field_count-- > 0)
		if (!read_field(site, origin.fields[origin.field_count].c,
		                value, name))
			return false;
	return true;
}

/* `object:method()`: the object is the first argument, wherever it came from. */
static bool evaluate_method(struct call_site *site, struct value *value,
                            struct text *name)
{
	struct instruction load, copy;
	uint32_t index = site->index;

	if (!site->frame->call.frame ||
	    !find_load(site, site->call_register, &index, &load) ||
	    load.opcode != BYTECODE_TGETS ||
	    !read_instruction(site, index - 1, &copy) ||
	    copy.opcode != BYTECODE_MOV || copy.d != load.b ||
	    copy.a != load.a + frame_slots(site->layout))
		return false;
	return read_value(site->layout, site->frame->call.frame + 8, value) &&
	       read_field(site, load.c, value, name);
}

/* ---- names -------------------------------------------------------------------- */

static bool find_call_site(struct call_site *site)
{
	const struct guest_call *call = &site->frame->call;
	struct instruction instruction;
	struct lua_function function;
	struct lua_frame caller;
	uint64_t below;

	site->function = call->function;
	site->base = 0;
	if (!call->pc)
		return false;
	if (call->frame) {
		below = lua_frame_previous(site->layout, call->frame, call->pc);
		if (!below || !lua_frame_read(site->layout, below, &caller))
			return false;
		site->function = caller.function;
		site->base = below + 8;
	}
	if (!lua_function_read(site->layout, site->function, &function) ||
	    function.id != FUNCTION_LUA)
		return false;
	site->prototype = function.prototype;
	if (!prototype_position(site->layout, site->prototype, call->pc,
	                        &site->index) ||
	    !read_instruction(site, site->index, &instruction) ||
	    (instruction.opcode != BYTECODE_CALL &&
	     instruction.opcode != BYTECODE_CALLM))
		return false;
	site->call_register = instruction.a;
	return true;
}

static bool holds_function(const struct call_site *site,
                           const struct value *value)
{
	struct lua_function function;

	return value->type == TYPE_FUNCTION &&
	       lua_function_read(site->layout, value->object, &function) &&
	       function.id == FUNCTION_LUA &&
	       function.prototype == site->frame->prototype;
}

/* Length of the copy, 0 if it cannot be one. */
static uint32_t copy_name(const struct text *text,
                          char name[CALL_NAME_BYTES_MAX])
{
	if (text->bytes > CALL_NAME_BYTES_MAX ||
	    !load_bytes(name, text->address, text->bytes))
		return 0;
	for (uint32_t i = 0; i < text->bytes; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return 0;
	return text->bytes;
}

void call_name_read(const struct guest_frame *frame, struct call_name *name)
{
	struct call_site site = {
		.layout = frame->vm->layout,
		.frame = frame,
		.node_budget = NODES_MAX,
	};
	struct value value;
	struct text text;

	name->bytes = 0;
	name->is_local = false;
	if (!find_call_site(&site))
		return;
	if (evaluate(&site, &value, &text, &name->is_local) &&
	    holds_function(&site, &value)) {
		name->bytes = copy_name(&text, name->text);
		return;
	}
	name->is_local = false;
	if (evaluate_method(&site, &value, &text) &&
	    holds_function(&site, &value))
		name->bytes = copy_name(&text, name->text);
}
