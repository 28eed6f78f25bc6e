// SPDX-License-Identifier: MIT
/*
 * Traces as machine code. On the VM's thread, never in the signal handler.
 *
 * A trace has no line table. But each snapshot tells how to rebuild the Lua
 * stack, program counters included, and where in the machine code it comes into
 * force (since LuaJIT a32aeadc, 2021-03).
 */
#include "trace_code.h"

#include "layout.h"
#include "object_sig.h"
#include "trace_sig.h"

/* An area starts with a link to the next one: its address and size. */
#define AREA_LINK_BYTES 16
/* In jit_State, behind the area's address. */
#define AREA_TOP_OFFSET    8
#define AREA_BOTTOM_OFFSET 16
/* Less is not worth a gap: the next trace goes into another area. */
#define AREA_FREE_MIN 1024

static uint64_t jit_state(const struct vm *vm)
{
	return vm->global_state - vm->layout->gg_global + vm->layout->gg_jit;
}

uint32_t trace_number_end(const struct vm *vm)
{
	uint32_t count;

	return load_u32(jit_state(vm) + vm->layout->jit.trace_count, &count)
	               ? count
	               : 0;
}

bool trace_read_code(const struct vm *vm, uint32_t number,
                     struct trace_code *code)
{
	const struct trace_layout *layout = &vm->layout->trace;
	uint64_t trace = trace_object(vm, number);
	struct trace_start start;
	uint16_t adjust;

	*code = (struct trace_code){.number = number};
	if (!trace || !load_u64(trace + layout->code, &code->address) ||
	    !load_u32(trace + layout->code_bytes, &code->bytes) ||
	    !load_u16(trace + layout->stack_adjust, &adjust) ||
	    code->address == 0 || code->bytes == 0)
		return false;
	code->frame_bytes =
		vm->layout->cframe.bytes + TRACE_FRAME_BYTES + adjust;
	if (trace_read_start(vm, trace, &start)) {
		code->prototype = start.prototype;
		code->start_line = start.line;
	}
	return true;
}

/* ---- lines ----------------------------------------------------------------
 */

static bool read_offset(const struct vm *vm, uint64_t trace, uint32_t snapshot,
                        uint16_t *offset)
{
	const struct snapshot_layout *layout = &vm->layout->snapshot;
	uint64_t snapshots;

	return layout->code_offset != SNAPSHOT_NO_CODE_OFFSET &&
	       load_u64(trace + vm->layout->trace.snapshots, &snapshots) &&
	       load_u16(snapshots + (uint64_t)snapshot * layout->bytes +
	                        layout->code_offset,
	                offset);
}

/* Where the innermost function of a snapshot is. */
static bool read_position(const struct vm *vm, uint64_t trace,
                          uint32_t snapshot, struct trace_line *line)
{
	struct trace_frames frames;
	struct lua_function function;
	uint32_t position;
	uint64_t pc;

	if (!trace_read_frames(vm, trace, snapshot, &frames))
		return false;
	pc = frames.count ? frames.frames[0].pc : frames.base_pc;
	if (frames.count && frames.frames[0].function &&
	    lua_function_read(vm->layout, frames.frames[0].function,
	                      &function) &&
	    function.id == FUNCTION_LUA)
		line->prototype = function.prototype;
	else if (!trace_find_prototype(vm, trace, pc, &line->prototype))
		return false;
	if (!prototype_position(vm->layout, line->prototype, pc, &position))
		return false;
	line->line = prototype_line(vm->layout, line->prototype, position);
	return true;
}

size_t trace_read_lines(const struct vm *vm, const struct trace_code *code,
                        struct trace_line *lines, size_t max)
{
	uint64_t trace = trace_object(vm, code->number);
	size_t count = 0;
	uint16_t snapshot_count = 0, offset;

	if (!trace || max == 0 ||
	    !load_u16(trace + vm->layout->trace.snapshot_count,
	              &snapshot_count))
		return 0;
	lines[count++] = (struct trace_line){code->address, code->prototype,
	                                     code->start_line};
	for (uint32_t i = 0; i < snapshot_count && count < max; i++) {
		struct trace_line line = lines[count - 1];

		if (!read_offset(vm, trace, i, &offset) ||
		    offset >= code->bytes ||
		    !read_position(vm, trace, i, &line))
			continue;
		line.address = code->address + offset;
		if (line.prototype == lines[count - 1].prototype &&
		    line.line == lines[count - 1].line)
			continue;
		if (line.address < lines[count - 1].address)
			continue;
		/* Of two at one place the later one is in force. */
		if (line.address == lines[count - 1].address)
			count--;
		lines[count++] = line;
	}
	return count;
}

/* ---- areas ----------------------------------------------------------------
 */

bool trace_read_area(const struct vm *vm, struct trace_area *area)
{
	uint64_t field = jit_state(vm) + vm->layout->jit.code_area;
	uint64_t bytes;

	if (!load_u64(field, &area->start) || area->start == 0 ||
	    !load_u64(field + AREA_TOP_OFFSET, &area->top) ||
	    !load_u64(field + AREA_BOTTOM_OFFSET, &area->used_end) ||
	    !load_u64(field + JIT_CODE_AREA_BYTES_OFFSET, &bytes))
		return false;
	area->end = area->start + bytes;
	area->used_start = area->start + AREA_LINK_BYTES;
	return area->used_end >= area->used_start &&
	       area->top >= area->used_end && area->top <= area->end;
}

bool trace_leave_gap(const struct vm *vm, uint32_t bytes)
{
	uint64_t field = jit_state(vm) + vm->layout->jit.code_area;
	struct trace_area area;

	if (!trace_read_area(vm, &area) ||
	    area.top - area.used_end < (uint64_t)bytes + AREA_FREE_MIN)
		return false;
	*(uint64_t *)(uintptr_t)(field + AREA_TOP_OFFSET) = area.top - bytes;
	return true;
}

/* ---- prototypes -----------------------------------------------------------
 */

bool prototype_read_chunk(const struct vm *vm, uint64_t prototype,
                          const char **text, uint32_t *bytes)
{
	const struct vm_layout *layout = vm->layout;
	uint64_t string;

	if (!is_object(layout, prototype, TYPE_PROTOTYPE) ||
	    !load_reference(layout,
	                    prototype + layout->object.prototype.chunk_name,
	                    &string) ||
	    !load_u32(string + layout->string.length, bytes)) {
		*bytes = 0;
		return false;
	}
	*text = (const char *)(uintptr_t)(string + layout->string.bytes);
	return true;
}
