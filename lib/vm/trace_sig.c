// SPDX-License-Identifier: MIT
/*
 * Compiled traces. Runs in the signal handler.
 *
 * A snapshot says how to rebuild the Lua stack at one point of a trace: a list
 * of entries (slot, IR reference, flags), then the PC. Frames of inlined
 * functions are among the entries, as constants.
 */
#include "trace_sig.h"

#include "code.h"

/* LuaJIT numbers traces with 16 bits. */
#define TRACE_NUMBER_END 65536
/* Machine code areas are a list; 64 of them hold the most that is allowed. */
#define CODE_AREAS_MAX 1024

#define SNAPSHOT_ENTRIES_MAX 255
#define SNAPSHOT_FLAG_FRAME  0x10000
#define SNAPSHOT_SLOT(entry) ((entry) >> 24)
#define SNAPSHOT_REF(entry)  ((entry)&0xffff)
#define IR_BIAS              0x8000 /* references below are constants */
#define IR_BYTES             8
#define IR_OPCODE_SHIFT      40

/* Constants of a trace that are looked through for a prototype. */
#define TRACE_CONSTANTS_MAX 512

/* First three bytes of "add rsp, constant", and "jmp". */
#define INSTRUCTION_ADD_RSP_NARROW 0xc48348
#define INSTRUCTION_ADD_RSP_WIDE   0xc48148
#define INSTRUCTION_JMP            0xe9

#define INSTRUCTION_JMP_SHORT 0xeb
#define INSTRUCTION_PUSH_BYTE 0x6a

/* Where the exit handler saves rdx, below a trace's stack pointer. */
#define EXIT_RDX 112

/* Instructions that are looked through for a return. */
#define RETURN_SEARCH_MAX 1000

static uint64_t jit_state(const struct vm *vm)
{
	return vm->global_state - vm->layout->gg_global + vm->layout->gg_jit;
}

bool trace_code_holds(const struct vm *vm, uint64_t address)
{
	uint64_t field = jit_state(vm) + vm->layout->jit.code_area;
	uint64_t area, bytes;
	int i;

	if (!load_u64(field, &area) ||
	    !load_u64(field + JIT_CODE_AREA_BYTES_OFFSET, &bytes))
		return false;
	for (i = 0; i < CODE_AREAS_MAX && area; i++) {
		if (address - area < bytes)
			return true;
		/* An area starts with the next one's address and size. */
		if (!load_u64(area + 8, &bytes) || !load_u64(area, &area))
			return false;
	}
	return false;
}

/* The array of traces, indexed by number. */
static bool read_trace_array(const struct vm *vm, uint64_t *array,
                             uint32_t *count)
{
	const struct jit_layout *jit = &vm->layout->jit;

	return load_u64(jit_state(vm) + jit->traces, array) &&
	       load_u32(jit_state(vm) + jit->trace_count, count) &&
	       *count <= TRACE_NUMBER_END;
}

static uint64_t trace_at(const struct vm *vm, uint64_t array, uint32_t number)
{
	uint64_t reference_bytes = vm->layout->gc64 ? 8 : 4;
	uint64_t trace;

	if (!load_reference(vm->layout, array + reference_bytes * number,
	                    &trace))
		return 0;
	return trace;
}

uint64_t trace_object(const struct vm *vm, uint32_t number)
{
	uint64_t array, trace;
	uint32_t count;

	if (!vm->traces_known || !number ||
	    !read_trace_array(vm, &array, &count) || number >= count)
		return 0;
	trace = trace_at(vm, array, number);
	return is_object(vm->layout, trace, TYPE_TRACE) ? trace : 0;
}

static bool holds_address(const struct vm *vm, uint64_t trace, uint64_t address)
{
	uint64_t code;
	uint32_t bytes;

	return trace && load_u64(trace + vm->layout->trace.code, &code) &&
	       load_u32(trace + vm->layout->trace.code_bytes, &bytes) &&
	       address - code < bytes;
}

uint32_t trace_find(const struct vm *vm, uint64_t address, uint32_t hint)
{
	uint64_t array;
	uint32_t count, number;

	if (!read_trace_array(vm, &array, &count))
		return 0;
	if (hint && hint < count &&
	    holds_address(vm, trace_at(vm, array, hint), address))
		return hint;
	for (number = 1; number < count; number++)
		if (holds_address(vm, trace_at(vm, array, number), address))
			return number;
	return 0;
}

uint64_t trace_base(const struct vm *vm)
{
	uint64_t jit_base;

	return load_reference(vm->layout,
	                      vm->global_state + vm->layout->global.jit_base,
	                      &jit_base)
	               ? jit_base
	               : 0;
}

bool trace_read_start(const struct vm *vm, uint64_t trace,
                      struct trace_start *start)
{
	const struct vm_layout *layout = vm->layout;
	uint32_t position;

	if (!load_reference(layout, trace + layout->trace.start_prototype,
	                    &start->prototype) ||
	    !load_reference(layout, trace + layout->trace.start_pc,
	                    &start->pc) ||
	    !is_object(layout, start->prototype, TYPE_PROTOTYPE))
		return false;
	start->line = 0;
	if (prototype_position(layout, start->prototype,
	                       start->pc + BYTECODE_BYTES, &position))
		start->line =
			prototype_line(layout, start->prototype, position);
	return true;
}

/* A return instruction that a trace starts at is replaced by a jump to the
 * trace, which keeps the original. */
static bool is_return(const struct vm *vm, uint32_t instruction)
{
	uint64_t trace;

	if ((instruction & 0xff) == BYTECODE_JLOOP) {
		trace = trace_object(vm, instruction >> 16);
		if (!trace ||
		    !load_u32(trace + vm->layout->trace.start_instruction,
		              &instruction))
			return false;
	}
	instruction &= 0xff;
	return instruction >= BYTECODE_RETM && instruction <= BYTECODE_RET1;
}

uint64_t trace_find_return(const struct vm *vm, uint64_t prototype)
{
	const struct vm_layout *layout = vm->layout;
	uint64_t start = prototype + layout->object.prototype.bytes;
	uint32_t count, position, instruction, line, found_line = 0;
	uint64_t found = 0;

	if (!load_u32(prototype + layout->object.prototype.bytecode_count,
	              &count) ||
	    count > RETURN_SEARCH_MAX)
		return 0;
	for (position = 1; position < count; position++) {
		if (!load_u32(start + UINT64_C(4) * position, &instruction))
			return 0;
		if (!is_return(vm, instruction))
			continue;
		line = prototype_line(layout, prototype, position);
		if (found && line != found_line)
			return 0;
		found = start + UINT64_C(4) * (position + 1);
		found_line = line;
	}
	return found;
}

uint32_t trace_snapshot_count(const struct vm *vm, uint64_t trace)
{
	uint16_t count;

	return load_u16(trace + vm->layout->trace.snapshot_count, &count)
	               ? count
	               : 0;
}

bool trace_snapshot_at(const struct vm *vm, uint64_t trace, uint64_t address,
                       uint32_t *snapshot)
{
	const struct vm_layout *layout = vm->layout;
	uint32_t low = 0, high;
	uint64_t code, snapshots;
	uint16_t count;

	if (layout->snapshot.code_offset == SNAPSHOT_NO_CODE_OFFSET ||
	    !load_u16(trace + layout->trace.snapshot_count, &count) ||
	    !load_u64(trace + layout->trace.code, &code) ||
	    !load_u64(trace + layout->trace.snapshots, &snapshots) || !count)
		return false;
	/* The last one whose code starts at or before the address. */
	high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint16_t offset;

		if (!load_u16(snapshots +
		                      (uint64_t)middle *
		                              layout->snapshot.bytes +
		                      layout->snapshot.code_offset,
		              &offset))
			return false;
		if (offset <= address - code)
			low = middle + 1;
		else
			high = middle;
	}
	*snapshot = low ? low - 1 : 0;
	return true;
}

/* A snapshot's entries, in memory of our own. */
struct snapshot_map {
	uint32_t count;
	uint32_t entries[SNAPSHOT_ENTRIES_MAX];
	uint64_t behind; /* address behind the entries */
	uint64_t ir;
};

bool trace_read_snapshot(const struct vm *vm, uint64_t trace, uint32_t number,
                         struct trace_snapshot *snapshot)
{
	const struct snapshot_layout *layout = &vm->layout->snapshot;
	uint64_t address, map;
	uint32_t offset;
	uint16_t count;

	if (!load_u16(trace + vm->layout->trace.snapshot_count, &count) ||
	    number >= count ||
	    !load_u64(trace + vm->layout->trace.snapshots, &address) ||
	    !load_u64(trace + vm->layout->trace.map, &map))
		return false;
	address += (uint64_t)number * layout->bytes;
	if (!load_u32(address + layout->map_offset, &offset) ||
	    !load_u8(address + layout->entry_count, &snapshot->entry_count) ||
	    !load_u8(address + layout->slot_count, &snapshot->slot_count))
		return false;
	if (layout->bytes == 8)
		offset &= 0xffff; /* 16 bit field, the reference follows */
	snapshot->entries = map + UINT64_C(4) * offset;
	snapshot->code_offset = 0;
	return layout->code_offset == SNAPSHOT_NO_CODE_OFFSET ||
	       load_u16(address + layout->code_offset, &snapshot->code_offset);
}

static bool read_map(const struct vm *vm, uint64_t trace, uint32_t number,
                     struct snapshot_map *map)
{
	struct trace_snapshot snapshot;

	if (!trace_read_snapshot(vm, trace, number, &snapshot) ||
	    !load_u64(trace + vm->layout->trace.ir, &map->ir))
		return false;
	map->count = snapshot.entry_count;
	map->behind = snapshot.entries + UINT64_C(4) * snapshot.entry_count;
	return !snapshot.entry_count ||
	       load_bytes(map->entries, snapshot.entries,
	                  sizeof(uint32_t) * snapshot.entry_count);
}

/* The object that the entry of a slot holds as a constant, 0 if none. */
static uint64_t constant_object(const struct vm *vm,
                                const struct snapshot_map *map, uint32_t slot)
{
	uint32_t i, reference, narrow;
	uint64_t instruction, object;

	for (i = 0; i < map->count; i++) {
		if (SNAPSHOT_SLOT(map->entries[i]) != slot)
			continue;
		reference = SNAPSHOT_REF(map->entries[i]);
		if (reference >= IR_BIAS ||
		    !load_u64(map->ir + IR_BYTES * (uint64_t)reference,
		              &instruction) ||
		    ((instruction >> IR_OPCODE_SHIFT) & 0xff) != IR_KGC)
			return 0;
		/* 32 bit references are in the instruction itself. */
		narrow = (uint32_t)instruction;
		if (!vm->layout->gc64)
			return narrow;
		if (!load_u64(map->ir + IR_BYTES * (uint64_t)reference +
		                      IR_BYTES,
		              &object))
			return 0;
		return object & SLOT_POINTER_MASK;
	}
	return 0;
}

/* The 64 bit constant that the entry of a slot refers to: a frame link. */
static bool constant_word(const struct snapshot_map *map, uint32_t slot,
                          uint64_t *word)
{
	uint32_t i, reference;

	for (i = 0; i < map->count; i++) {
		if (SNAPSHOT_SLOT(map->entries[i]) != slot)
			continue;
		reference = SNAPSHOT_REF(map->entries[i]);
		return reference < IR_BIAS &&
		       load_u64(map->ir + IR_BYTES * (uint64_t)reference +
		                        IR_BYTES,
		                word);
	}
	return false;
}

static void append_frame(struct trace_frames *frames,
                         const struct trace_frame *frame)
{
	if (frames->count < TRACE_FRAMES_MAX)
		frames->frames[frames->count++] = *frame;
}

/* A function that is not a constant and was to be called when the trace ends,
 * behind a continuation: a library iterator, say. It does not run yet. */
static bool is_pending_call(const struct trace_frames *frames,
                            const struct trace_frame *frame)
{
	return !frame->function && !frames->count &&
	       link_type(frame->link) == LINK_CONTINUATION;
}

/* PC of the frame below one with this link: of the caller. */
static uint64_t caller_pc(const struct snapshot_map *map, uint32_t slot,
                          uint64_t link, uint64_t pc)
{
	uint64_t interrupted = 0;

	switch (link_type(link)) {
	case LINK_LUA:
		return link;
	case LINK_VARARG: /* the same function once more */
		return pc;
	case LINK_CONTINUATION:
		if (constant_word(map, slot - 2, &interrupted))
			return interrupted;
		return 0;
	default:
		return 0;
	}
}

/* Two-slot frames: the PC is packed with the base slot in one word behind the
 * entries; links and functions are entries. */
static bool read_frames_gc64(const struct vm *vm,
                             const struct snapshot_map *map,
                             struct trace_frames *frames)
{
	struct trace_frame frame;
	uint64_t packed;
	uint32_t i, slot;

	if (!load_u64(map->behind, &packed))
		return false;
	frame.pc = (packed >> 8) + BYTECODE_BYTES;
	frames->top_pc = frame.pc;
	for (i = map->count; i-- > 0;) {
		slot = SNAPSHOT_SLOT(map->entries[i]);
		if (!(map->entries[i] & SNAPSHOT_FLAG_FRAME) || slot < 2)
			continue;
		if (!constant_word(map, slot, &frame.link))
			return false;
		frame.function = constant_object(vm, map, slot - 1);
		frame.slots = slot - 1;
		if (link_type(frame.link) != LINK_VARARG &&
		    !is_pending_call(frames, &frame))
			append_frame(frames, &frame);
		frame.pc = caller_pc(map, slot, frame.link, frame.pc);
	}
	frames->base_pc = frame.pc;
	return true;
}

/* One-slot frames: PC and links are 32 bit words behind the entries, innermost
 * first; the function is the frame's own entry. */
static bool read_frames_gc32(const struct vm *vm,
                             const struct snapshot_map *map,
                             struct trace_frames *frames)
{
	uint64_t word = map->behind;
	struct trace_frame frame;
	uint32_t i, slot, narrow;

	if (!load_u32(word, &narrow))
		return false;
	frame.pc = (uint64_t)narrow + BYTECODE_BYTES;
	frames->top_pc = frame.pc;
	for (i = map->count; i-- > 0;) {
		slot = SNAPSHOT_SLOT(map->entries[i]);
		if (!(map->entries[i] & SNAPSHOT_FLAG_FRAME) || slot < 1)
			continue;
		word += 4;
		if (!load_u32(word, &narrow))
			return false;
		frame.link = narrow;
		frame.function = constant_object(vm, map, slot);
		frame.slots = slot;
		if (link_type(frame.link) != LINK_VARARG &&
		    !is_pending_call(frames, &frame))
			append_frame(frames, &frame);
		if (link_type(frame.link) == LINK_CONTINUATION) {
			word += 4; /* PC that the continuation goes on at */
			if (!load_u32(word, &narrow))
				return false;
			frame.pc = narrow;
		} else {
			frame.pc = caller_pc(map, slot, frame.link, frame.pc);
		}
	}
	frames->base_pc = frame.pc;
	return true;
}

static bool is_prototype_of(const struct vm *vm, uint64_t prototype,
                            uint64_t pc)
{
	uint32_t position;

	return is_object(vm->layout, prototype, TYPE_PROTOTYPE) &&
	       prototype_position(vm->layout, prototype, pc, &position);
}

bool trace_find_prototype(const struct vm *vm, uint64_t trace, uint64_t pc,
                          uint64_t *prototype)
{
	uint64_t ir, address, instruction, object;
	struct trace_start start;
	uint32_t i;

	if (trace_read_start(vm, trace, &start) &&
	    is_prototype_of(vm, start.prototype, pc)) {
		*prototype = start.prototype;
		return true;
	}
	if (!load_u64(trace + vm->layout->trace.ir, &ir))
		return false;
	/* The recorder keeps the prototype alive by a constant. Constants are
	 * downwards from the bias; what is not one is no prototype either. */
	address = ir + IR_BYTES * (uint64_t)(IR_BIAS - 1);
	for (i = 0; i < TRACE_CONSTANTS_MAX; i++, address -= IR_BYTES) {
		if (!load_u64(address, &instruction))
			return false;
		if (((instruction >> IR_OPCODE_SHIFT) & 0xff) != IR_KGC)
			continue;
		object = (uint32_t)instruction;
		if (vm->layout->gc64 && !load_u64(address + IR_BYTES, &object))
			return false;
		*prototype = object & SLOT_POINTER_MASK;
		if (is_prototype_of(vm, *prototype, pc))
			return true;
	}
	return false;
}

/* What was pushed on the stack of a trace: its own instruction, if that is yet
 * to come, else the word where it lies. */
static bool read_push(uint64_t instruction, uint64_t word_address,
                      uint8_t *byte)
{
	uint64_t word;

	if (instruction)
		return load_u8(instruction + 1, byte);
	if (!load_u64(word_address, &word) || (int64_t)word < INT8_MIN ||
	    (int64_t)word > INT8_MAX)
		return false;
	*byte = (uint8_t)word;
	return true;
}

/* An exit is a push of the low byte of its number, a jump to the end of its
 * group, a push of the high byte, and a jump to the VM. Which pushes are at
 * address or lie ahead? 0: done. */
static bool find_pushes(uint64_t address, uint64_t *low, uint64_t *high)
{
	uint8_t opcode, next, distance;

	*low = *high = 0;
	if (!load_u8(address, &opcode) || !load_u8(address + 1, &distance) ||
	    !load_u8(address + 2, &next))
		return false;
	if (opcode == INSTRUCTION_PUSH_BYTE &&
	    (next == INSTRUCTION_JMP_SHORT || next == INSTRUCTION_PUSH_BYTE)) {
		*low = address;
		address += 2;
		if (!load_u8(address, &opcode) ||
		    !load_u8(address + 1, &distance))
			return false;
	}
	if (opcode == INSTRUCTION_JMP_SHORT)
		address += 2 + (uint64_t)(int64_t)(int8_t)distance;
	if (load_u8(address, &opcode) && opcode == INSTRUCTION_PUSH_BYTE)
		*high = address;
	return true;
}

/* Stack pointer of a trace that runs on a C frame. */
static bool trace_stack_pointer(const struct vm *vm, uint64_t trace,
                                uint64_t cframe, uint64_t *stack)
{
	uint16_t adjust;

	if (!load_u16(trace + vm->layout->trace.stack_adjust, &adjust))
		return false;
	*stack = cframe - TRACE_FRAME_BYTES - adjust;
	return true;
}

uint64_t trace_exit_base(const struct vm *vm, uint64_t trace, uint64_t cframe)
{
	uint64_t stack, base;

	if (!trace_stack_pointer(vm, trace, cframe, &stack) ||
	    !load_u64(stack - EXIT_RDX, &base))
		return 0;
	return base;
}

bool trace_exit_at(const struct vm *vm, uint64_t trace, uint64_t address,
                   uint64_t cframe, uint32_t *snapshot)
{
	uint64_t low_push = 0, high_push = 0, stack;
	uint8_t low, high;

	if (!trace_stack_pointer(vm, trace, cframe, &stack))
		return false;
	if (trace_code_holds(vm, address)) {
		if (!find_pushes(address, &low_push, &high_push))
			return false;
	} else if (address >= vm->code->exit_number_ready) {
		return false;
	}
	if (!read_push(low_push, stack - 8, &low) ||
	    !read_push(high_push, stack - 16, &high))
		return false;
	*snapshot = (uint32_t)high << 8 | low;
	return *snapshot < trace_snapshot_count(vm, trace);
}

/* Bytes of an instruction "add rsp, constant", 0 if it is another. */
static uint64_t stack_release_bytes(uint64_t address)
{
	uint32_t word;

	if (!load_u32(address, &word))
		return 0;
	if ((word & 0xffffff) == INSTRUCTION_ADD_RSP_NARROW)
		return 4;
	return (word & 0xffffff) == INSTRUCTION_ADD_RSP_WIDE ? 7 : 0;
}

/* The end of such a trace is: store jit_base; release the stack, if it took
 * some; jump. Is the address behind the store? */
bool trace_has_handed_over(const struct vm *vm, uint64_t trace,
                           uint64_t address)
{
	uint64_t jit_base = vm->global_state + vm->layout->global.jit_base;
	uint64_t dispatch = vm->global_state - vm->layout->gg_global +
	                    vm->layout->gg_dispatch;
	uint64_t start = address, jump = address;
	uint32_t operand;
	uint16_t link;
	uint8_t opcode;

	if (!load_u16(trace + vm->layout->trace.link, &link) || !link)
		return false;
	jump += stack_release_bytes(address);
	if (!load_u8(jump, &opcode) || opcode != INSTRUCTION_JMP)
		return false;
	if (jump == address && stack_release_bytes(address - 4) == 4)
		start -= 4;
	else if (jump == address && stack_release_bytes(address - 7) == 7)
		start -= 7;
	/* The store ends in the field's address, relative to the dispatch
	 * table where references have 64 bits. */
	return load_u32(start - 4, &operand) &&
	       operand == (uint32_t)(vm->layout->gc64 ? jit_base - dispatch
	                                              : jit_base);
}

bool trace_read_frames(const struct vm *vm, uint64_t trace, uint32_t snapshot,
                       struct trace_frames *frames)
{
	struct snapshot_map map;

	frames->count = 0;
	frames->top_pc = 0;
	frames->base_pc = 0;
	frames->base_function = 0;
	if (!read_map(vm, trace, snapshot, &map))
		return false;
	frames->base_function = constant_object(vm, &map, 0);
	return vm->layout->gc64 ? read_frames_gc64(vm, &map, frames)
	                        : read_frames_gc32(vm, &map, frames);
}
