// SPDX-License-Identifier: MIT
/*
 * Reading LuaJIT's objects. Runs in the signal handler.
 */
#include "object_sig.h"

/* A stack has at least these many slots, and LuaJIT's limit is 65,500. */
#define STACK_SLOTS_MIN 10
#define STACK_SLOTS_MAX 2000000

bool lua_function_read(const struct vm_layout *layout, uint64_t address,
                       struct lua_function *function)
{
	uint64_t bytecode;

	if (!address || !is_object(layout, address, TYPE_FUNCTION) ||
	    !load_u8(address + layout->object.function.id, &function->id))
		return false;
	function->prototype = 0;
	function->c_function = 0;
	if (function->id != FUNCTION_LUA)
		return load_u64(address + layout->object.function.c_function,
		                &function->c_function);
	if (!load_reference(layout, address + layout->object.function.bytecode,
	                    &bytecode))
		return false;
	function->prototype = bytecode - layout->object.prototype.bytes;
	return is_object(layout, function->prototype, TYPE_PROTOTYPE);
}

bool lua_stack_read(const struct vm_layout *layout, uint64_t thread,
                    struct lua_stack *stack)
{
	uint32_t slots;
	uint64_t start;

	if (!load_reference(layout, thread + layout->object.thread.stack,
	                    &start) ||
	    !load_u32(thread + layout->object.thread.stack_size, &slots) ||
	    !start || slots < STACK_SLOTS_MIN || slots > STACK_SLOTS_MAX)
		return false;
	stack->thread = thread;
	stack->start = start;
	stack->end = start + UINT64_C(8) * slots;
	return true;
}

bool lua_frame_read(const struct vm_layout *layout, uint64_t frame,
                    struct lua_frame *contents)
{
	uint64_t slot, tag;

	if (!layout->gc64) {
		if (!load_u64(frame, &slot))
			return false;
		contents->function = (uint32_t)slot;
		contents->link = slot >> 32;
		return true;
	}
	if (!load_u64(frame - 8, &slot) || !load_u64(frame, &contents->link))
		return false;
	tag = slot >> SLOT_TAG_SHIFT;
	contents->function = slot & SLOT_POINTER_MASK;
	return tag == SLOT_TAG_FUNCTION || tag == SLOT_TAG_THREAD;
}

uint64_t lua_frame_previous(const struct vm_layout *layout, uint64_t frame,
                            uint64_t link)
{
	uint32_t instruction;

	if (link_type(link) != LINK_LUA)
		return frame - (link & ~UINT64_C(7));
	if (!load_u32(link - BYTECODE_BYTES, &instruction))
		return 0;
	/* Operand A of the call instruction: the called function's slot. */
	return frame - 8 * (frame_slots(layout) + ((instruction >> 8) & 0xff));
}

bool prototype_position(const struct vm_layout *layout, uint64_t prototype,
                        uint64_t pc, uint32_t *position)
{
	uint64_t start = prototype + layout->object.prototype.bytes;
	uint32_t count;

	if (!load_u32(prototype + layout->object.prototype.bytecode_count,
	              &count) ||
	    pc < start || pc > start + UINT64_C(4) * count || (pc & 3))
		return false;
	*position = pc == start ? 0 : (uint32_t)((pc - start) / 4 - 1);
	return true;
}

bool lua_link_is_sound(const struct vm_layout *layout,
                       const struct lua_stack *stack, uint64_t frame,
                       uint64_t link)
{
	uint64_t bottom = stack_bottom(layout, stack);
	struct lua_function caller_function;
	struct lua_frame caller;
	uint64_t previous;
	uint32_t position;

	if (frame == bottom)
		return true;
	if (link_type(link) == LINK_LUA && link < POINTER_MIN)
		return false;
	previous = lua_frame_previous(layout, frame, link);
	if (previous < bottom || previous >= frame ||
	    !lua_frame_read(layout, previous, &caller))
		return false;
	if (caller.function == stack->thread)
		return previous == bottom || link_type(link) != LINK_LUA;
	if (!lua_function_read(layout, caller.function, &caller_function))
		return false;
	return link_type(link) != LINK_LUA ||
	       (caller_function.id == FUNCTION_LUA &&
	        prototype_position(layout, caller_function.prototype, link,
	                           &position));
}

bool lua_continuation_read(const struct vm_layout *layout, uint64_t frame,
                           uint64_t *continuation, uint64_t *pc)
{
	uint64_t word;

	*pc = 0;
	if (layout->gc64)
		return load_u64(frame - 16, pc) &&
		       load_u64(frame - 24, continuation);
	if (!load_u64(frame - 8, &word))
		return false;
	*continuation = (uint32_t)word;
	*pc = word >> 32;
	return true;
}

/* Line information is one element an instruction behind the header, as wide
 * as the number of lines needs. */
uint32_t prototype_line(const struct vm_layout *layout, uint64_t prototype,
                        uint32_t position)
{
	uint32_t first_line, line_count, wide = 0;
	uint64_t line_info;
	uint16_t medium = 0;
	uint8_t narrow = 0;
	bool read;

	if (!load_u32(prototype + layout->object.prototype.first_line,
	              &first_line) ||
	    !load_u32(prototype + layout->object.prototype.line_count,
	              &line_count) ||
	    !load_reference(layout,
	                    prototype + layout->object.prototype.line_info,
	                    &line_info) ||
	    !line_info)
		return 0;
	if (!position)
		return first_line;
	position--;
	if (line_count < 256)
		read = load_u8(line_info + position, &narrow);
	else if (line_count < 65536)
		read = load_u16(line_info + UINT64_C(2) * position, &medium);
	else
		read = load_u32(line_info + UINT64_C(4) * position, &wide);
	return read ? first_line + narrow + medium + wide : 0;
}

bool table_holds_thread(const struct vm_layout *layout, uint64_t table,
                        uint64_t thread)
{
	uint64_t array, item;

	if (!is_object(layout, table, TYPE_TABLE) ||
	    !load_reference(layout, table + layout->object.table.array,
	                    &array) ||
	    !load_u64(array + 8, &item))
		return false;
	if (layout->gc64)
		return item >> SLOT_TAG_SHIFT == SLOT_TAG_THREAD &&
		       (item & SLOT_POINTER_MASK) == thread;
	return ~(uint32_t)(item >> 32) == TYPE_THREAD &&
	       (uint32_t)item == thread;
}

bool pc_behind_call(uint64_t pc, uint32_t *base_register)
{
	uint32_t instruction, opcode;

	if (!load_u32(pc - BYTECODE_BYTES, &instruction))
		return false;
	opcode = instruction & 0xff;
	*base_register = (instruction >> 8) & 0xff;
	return opcode >= BYTECODE_CALLM && opcode <= BYTECODE_ITERN;
}
