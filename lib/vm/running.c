// SPDX-License-Identifier: MIT
/*
 * Who runs in the VM now; see running.h. On the VM's thread.
 *
 * The VM has stored base and PC before it calls its allocator, so the innermost
 * frame needs no search. What a PC, or a return address in a trace, stands for
 * is remembered for as long as the objects live that it was read from.
 */
#include "running.h"

#include <string.h>

#include "object_sig.h"
#include "trace_sig.h"
#include "vm_frame_sig.h"

/* What a root trace pushes between the VM's C frame and its own. */
#define TRACE_FRAME_BYTES 16

/* Library functions that call library functions (pcall of string.rep). */
#define LIBRARY_FRAMES_MAX 16

/* Bytecodes that allocate, the same in every build. */
#define BYTECODE_CAT   38
#define BYTECODE_FNEW  51
#define BYTECODE_TNEW  52
#define BYTECODE_TDUP  53
#define BYTECODE_GSET  55
#define BYTECODE_TSETV 60
#define BYTECODE_TSETR 64

/* IR of traces. */
#define IR_BIAS         0x8000 /* references below are constants */
#define IR_BYTES        8
#define IR_OPCODE_SHIFT 40
#define IR_EQ           8

#define PLACES (1u << 12)
#define MARKS  (1u << 12)

/* Open addressing, at most half full. */
#define WATCHED       (1u << 13)
#define WATCHED_LIMIT (WATCHED / 2)
#define FILTER_WORDS  512

/* A bytecode position, or a return address in a trace. */
struct place {
	uint64_t address;
	uint64_t owner; /* the prototype or trace that it lies in */
	uint64_t prototype;
	uint32_t line;       /* 0: not known */
	uint32_t generation; /* another one: no longer true */
};

struct mark {
	uint64_t address; /* of the prototype or trace */
	uint32_t value;   /* the caller's */
	uint32_t generation;
};

struct running_cache {
	uint32_t generation; /* of places and marks that are true, from 1 */
	uint32_t watched_count;
	uint64_t thread; /* known to be a lua_State of the VM */
	struct place places[PLACES];
	struct mark marks[MARKS];
	uint64_t watched[WATCHED]; /* objects that places and marks rely on */
	/* A bit for the hash of each: most memory that is given back is none of
	 * them, and this stays in the CPU's nearest cache. */
	uint64_t filter[FILTER_WORDS];
};

size_t running_cache_bytes(void)
{
	return sizeof(struct running_cache);
}

/* ---- what is remembered ---------------------------------------------------- */

static size_t hash(uint64_t address)
{
	return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
}

static void forget_all(struct running_cache *cache)
{
	cache->generation++;
	cache->thread = 0;
	cache->watched_count = 0;
	memset(cache->watched, 0, sizeof(cache->watched));
	memset(cache->filter, 0, sizeof(cache->filter));
}

/* The slot of the address, or the free one where it belongs. */
static uint64_t *watched_slot(struct running_cache *cache, uint64_t address)
{
	size_t i = hash(address) % WATCHED;

	while (cache->watched[i] && cache->watched[i] != address)
		i = (i + 1) % WATCHED;
	return &cache->watched[i];
}

static uint64_t *filter_word(struct running_cache *cache, uint64_t address)
{
	return &cache->filter[hash(address) / 64 % FILTER_WORDS];
}

static uint64_t filter_bit(uint64_t address)
{
	return UINT64_C(1) << hash(address) % 64;
}

static void watch(struct running_cache *cache, uint64_t address)
{
	uint64_t *slot = watched_slot(cache, address);

	if (*slot == address)
		return;
	if (cache->watched_count == WATCHED_LIMIT) {
		forget_all(cache);
		slot = watched_slot(cache, address);
	}
	*slot = address;
	cache->watched_count++;
	*filter_word(cache, address) |= filter_bit(address);
}

void running_forget(struct running_cache *cache, uint64_t address)
{
	if ((*filter_word(cache, address) & filter_bit(address)) &&
	    *watched_slot(cache, address) == address)
		forget_all(cache);
}

static uint32_t *find_mark(struct running_cache *cache, uint64_t address)
{
	struct mark *mark = &cache->marks[hash(address) % MARKS];

	if (mark->address != address || mark->generation != cache->generation) {
		watch(cache, address);
		*mark = (struct mark){address, 0, cache->generation};
	}
	return &mark->value;
}

/* ---- bytecode -------------------------------------------------------------- */

/* Fills *running with the Lua function that executes the instruction before pc.
 * False if that is not in its bytecode, or has no line. */
static bool use_bytecode(struct running_cache *cache, const struct vm *vm,
                         uint64_t prototype, uint64_t pc,
                         struct running *running)
{
	struct place *place = &cache->places[hash(pc) % PLACES];
	uint32_t position;

	if (place->address != pc || place->owner != prototype ||
	    place->generation != cache->generation) {
		if (!prototype_position(vm->layout, prototype, pc, &position))
			return false;
		watch(cache, prototype);
		*place = (struct place){
			.address = pc,
			.owner = prototype,
			.prototype = prototype,
			.line = prototype_line(vm->layout, prototype, position),
			.generation = cache->generation,
		};
	}
	running->kind = RUNNING_LUA;
	running->value = prototype;
	running->line = place->line;
	running->mark = find_mark(cache, prototype);
	return place->line != 0;
}

static struct guest_call call_of(uint64_t frame, uint64_t link)
{
	return (struct guest_call){
		.pc = link_type(link) == LINK_LUA ? link : 0,
		.frame = frame,
	};
}

/* PC of the function that called the one in frame; 0 where C called it. */
static uint64_t caller_pc(const struct vm *vm, uint64_t frame, uint64_t link)
{
	uint64_t pc;

	if (link_type(link) == LINK_LUA)
		return link;
	if (link_type(link) != LINK_CONTINUATION)
		return 0;
	if (vm->layout->gc64)
		return load_u64(frame - 16, &pc) ? pc : 0;
	return load_u64(frame - 8, &pc) ? pc >> 32 : 0;
}

/* The Lua function that the library function in frame works for. */
static bool use_caller(struct running_cache *cache, const struct vm *vm,
                       uint64_t frame, struct lua_frame contents,
                       struct running *running)
{
	struct lua_function function;
	uint64_t pc;
	int i;

	for (i = 0; i < LIBRARY_FRAMES_MAX; i++) {
		if (link_type(contents.link) == LINK_C ||
		    link_type(contents.link) == LINK_C_PROTECTED)
			return false;
		pc = caller_pc(vm, frame, contents.link);
		frame = lua_frame_previous(vm->layout, frame, contents.link);
		if (!frame || !lua_frame_read(vm->layout, frame, &contents) ||
		    !lua_function_read(vm->layout, contents.function,
		                       &function) ||
		    function.id == FUNCTION_C)
			return false;
		running->call = call_of(frame, contents.link);
		if (function.id == FUNCTION_LUA)
			return use_bytecode(cache, vm, function.prototype, pc,
			                    running);
	}
	return false;
}

static bool use_frame(struct running_cache *cache, const struct vm *vm,
                      uint64_t cframe, uint64_t frame, struct running *running)
{
	const struct vm_layout *layout = vm->layout;
	struct lua_function function;
	struct lua_frame contents;
	uint64_t pc;

	if (!lua_frame_read(layout, frame, &contents) ||
	    contents.function == running->coroutine ||
	    !lua_function_read(layout, contents.function, &function))
		return false;
	running->call = call_of(frame, contents.link);
	if (function.id == FUNCTION_LUA)
		return load_reference(layout, cframe + layout->cframe.pc,
		                      &pc) &&
		       use_bytecode(cache, vm, function.prototype, pc, running);
	if (function.id != FUNCTION_C &&
	    use_caller(cache, vm, frame, contents, running))
		return true;
	running->kind = RUNNING_C;
	running->value = function.c_function;
	running->mark = NULL;
	return function.c_function != 0;
}

/* ---- traces ---------------------------------------------------------------- */

/* A trace calls C with its stack frame at a known distance from the VM's, and
 * the return address below that. It is believed only if it lies in the trace. */
static bool read_return_address(const struct vm *vm, uint64_t cframe,
                                uint64_t trace, uint64_t *address)
{
	const struct trace_layout *layout = &vm->layout->trace;
	uint64_t code;
	uint32_t bytes;
	uint16_t adjust;

	return load_u16(trace + layout->stack_adjust, &adjust) &&
	       load_u64(cframe - TRACE_FRAME_BYTES - adjust - 8, address) &&
	       load_u64(trace + layout->code, &code) &&
	       load_u32(trace + layout->code_bytes, &bytes) &&
	       *address - code < bytes;
}

/* An instruction of a Lua function. */
struct position {
	uint64_t prototype;
	uint64_t function; /* its closure, 0: not known */
	uint32_t index;    /* of the instruction, from 1; 0: the header */
	uint32_t inlined;  /* functions that the trace has inlined here */
};

/* Where a trace goes on if it is left at a snapshot. */
static bool read_position(const struct vm *vm, uint64_t trace,
                          uint32_t snapshot, struct position *position)
{
	struct trace_frames frames;
	struct lua_function function;
	uint64_t object = 0, pc;

	if (!trace_read_frames(vm, trace, snapshot, &frames))
		return false;
	pc = frames.base_pc;
	if (frames.count) {
		pc = frames.frames[0].pc;
		object = frames.frames[0].function;
	}
	position->inlined = frames.count;
	position->function = object;
	position->prototype = 0;
	if (lua_function_read(vm->layout, object, &function) &&
	    function.id == FUNCTION_LUA)
		position->prototype = function.prototype;
	return (position->prototype &&
	        prototype_position(vm->layout, position->prototype, pc,
	                           &position->index)) ||
	       (trace_find_prototype(vm, trace, pc, &position->prototype) &&
	        prototype_position(vm->layout, position->prototype, pc,
	                           &position->index));
}

/* How likely it is that an instruction allocates. */
enum allocation_rank {
	RANK_NEVER,
	RANK_CALL,  /* if a library function is called */
	RANK_STORE, /* if the table grows */
	RANK_ALWAYS,
};

static unsigned int allocation_rank(uint8_t opcode)
{
	switch (opcode) {
	case BYTECODE_FNEW:
	case BYTECODE_TNEW:
	case BYTECODE_TDUP:
	case BYTECODE_CAT:
		return RANK_ALWAYS;
	case BYTECODE_GSET:
		return RANK_STORE;
	}
	if (opcode >= BYTECODE_TSETV && opcode <= BYTECODE_TSETR)
		return RANK_STORE;
	if (opcode >= BYTECODE_CALLM && opcode <= BYTECODE_ITERN)
		return RANK_CALL;
	return RANK_NEVER;
}

enum allocation_choice {
	CHOOSE_FIRST,
	CHOOSE_LAST,
};

/* The instruction from first on and before end that most likely allocates; of
 * several the first or the last. 0: none does. */
static uint32_t find_allocation(const struct vm *vm, uint64_t prototype,
                                uint32_t first, uint32_t end,
                                enum allocation_choice choice)
{
	uint64_t start = prototype + vm->layout->object.prototype.bytes;
	unsigned int best_rank = RANK_NEVER, rank;
	uint32_t best = 0, i;
	uint8_t opcode;

	for (i = first; i < end; i++) {
		if (!load_u8(start + UINT64_C(4) * i, &opcode))
			break;
		rank = allocation_rank(opcode);
		if (rank > best_rank ||
		    (choice == CHOOSE_LAST && rank && rank == best_rank)) {
			best_rank = rank;
			best = i;
		}
	}
	return best;
}

static uint32_t bytecode_end(const struct vm *vm, uint64_t prototype)
{
	uint32_t count;

	return load_u32(prototype + vm->layout->object.prototype.bytecode_count,
	                &count)
	               ? count
	               : 0;
}

static unsigned int rank_at(const struct vm *vm, uint64_t prototype,
                            uint32_t index)
{
	uint8_t opcode;

	return index && load_u8(prototype + vm->layout->object.prototype.bytes +
	                                UINT64_C(4) * index,
	                        &opcode)
	               ? allocation_rank(opcode)
	               : 0;
}

/* First IR instruction behind a snapshot. */
static bool read_snapshot_reference(const struct vm *vm, uint64_t trace,
                                    uint32_t snapshot, uint16_t *reference)
{
	const struct vm_layout *layout = vm->layout;
	uint64_t snapshots;
	uint16_t count;

	return load_u16(trace + layout->trace.snapshot_count, &count) &&
	       snapshot < count &&
	       load_u64(trace + layout->trace.snapshots, &snapshots) &&
	       /* The reference precedes the code offset. */
	       load_u16(snapshots +
	                        (uint64_t)snapshot * layout->snapshot.bytes +
	                        layout->snapshot.code_offset - 2,
	                reference);
}

/* The Lua function that an instruction compares the called one with; 0: it is
 * another instruction. */
static uint64_t compared_function(const struct vm *vm, uint64_t ir,
                                  uint32_t reference)
{
	struct lua_function function;
	uint64_t instruction, constant, object;
	uint16_t operand;

	if (!load_u64(ir + IR_BYTES * (uint64_t)reference, &instruction) ||
	    ((instruction >> IR_OPCODE_SHIFT) & 0xff) != IR_EQ)
		return 0;
	operand = (uint16_t)(instruction >> 16);
	if (operand >= IR_BIAS ||
	    !load_u64(ir + IR_BYTES * (uint64_t)operand, &constant) ||
	    ((constant >> IR_OPCODE_SHIFT) & 0xff) != IR_KGC)
		return 0;
	object = (uint32_t)constant;
	if (vm->layout->gc64 &&
	    !load_u64(ir + IR_BYTES * (uint64_t)operand + IR_BYTES, &object))
		return 0;
	object &= SLOT_POINTER_MASK;
	return lua_function_read(vm->layout, object, &function) &&
	                       function.id == FUNCTION_LUA
	               ? function.prototype
	               : 0;
}

/* Takes the place in a function that was called, if it is a better one. */
static void prefer_called(const struct vm *vm, uint64_t prototype,
                          struct position *at)
{
	uint32_t index = find_allocation(
		vm, prototype, 1, bytecode_end(vm, prototype), CHOOSE_FIRST);

	if (rank_at(vm, prototype, index) <=
	    rank_at(vm, at->prototype, at->index))
		return;
	at->prototype = prototype;
	at->index = index;
}

/* The closure of the frame at jit_base. */
static uint64_t base_function(const struct vm *vm)
{
	struct lua_frame contents;
	uint64_t base;

	if (!load_reference(vm->layout,
	                    vm->global_state + vm->layout->global.jit_base,
	                    &base) ||
	    !lua_frame_read(vm->layout, base - 8, &contents))
		return 0;
	return contents.function;
}

/* The value of an upvalue, if it is a Lua function: its prototype, else 0. */
static uint64_t upvalue_prototype(const struct vm *vm, uint64_t closure,
                                  uint32_t number)
{
	const struct vm_layout *layout = vm->layout;
	uint64_t reference_bytes = layout->gc64 ? 8 : 4;
	struct lua_function function;
	uint64_t upvalue, value, word;

	if (!load_reference(layout,
	                    closure + layout->object.function.upvalues +
	                            reference_bytes * number,
	                    &upvalue) ||
	    !load_reference(layout, upvalue + layout->object.upvalue.value,
	                    &value) ||
	    !load_u64(value, &word))
		return 0;
	word = layout->gc64 ? word & SLOT_POINTER_MASK : (uint32_t)word;
	return lua_function_read(layout, word, &function) &&
	                       function.id == FUNCTION_LUA
	               ? function.prototype
	               : 0;
}

/* A local function that is never assigned again is a constant of the trace, and
 * needs no check: the call's register was loaded from an upvalue. */
static uint64_t called_upvalue(const struct vm *vm, const struct position *at)
{
	uint64_t start = at->prototype + vm->layout->object.prototype.bytes;
	uint64_t closure = at->inlined ? at->function : base_function(vm);
	struct lua_function function;
	uint32_t call, instruction, i;

	if (!lua_function_read(vm->layout, closure, &function) ||
	    function.prototype != at->prototype ||
	    !load_u32(start + UINT64_C(4) * at->index, &call))
		return 0;
	for (i = at->index; i-- > 1;) {
		if (!load_u32(start + UINT64_C(4) * i, &instruction))
			return 0;
		if ((instruction & 0xffff) == ((call & 0xff00) | BYTECODE_UGET))
			return upvalue_prototype(vm, closure,
			                         instruction >> 16);
	}
	return 0;
}

/* A function that was called and has returned between two snapshots leaves no
 * frame in either, but the check that it is the one that was recorded. */
static void find_in_called(const struct vm *vm, uint64_t trace,
                           uint32_t snapshot, struct position *at)
{
	uint64_t ir, prototype = called_upvalue(vm, at);
	uint16_t reference, end;

	if (prototype) {
		prefer_called(vm, prototype, at);
		return;
	}
	if (!load_u64(trace + vm->layout->trace.ir, &ir) ||
	    !read_snapshot_reference(vm, trace, snapshot, &reference) ||
	    !read_snapshot_reference(vm, trace, snapshot + 1, &end))
		return;
	for (; reference < end; reference++) {
		prototype = compared_function(vm, ir, reference);
		if (prototype)
			prefer_called(vm, prototype, at);
	}
}

/* Takes the place if there is one. */
static bool use_index(struct position *at, uint64_t prototype, uint32_t index)
{
	if (!index)
		return false;
	at->prototype = prototype;
	at->index = index;
	return true;
}

/*
 * Between the snapshot in force and the next one: in the same function between
 * the two; in one that was called meanwhile, before the second; of one that
 * returned, behind the first, or in its caller, before the second.
 */
static bool find_between(const struct vm *vm, struct position *at,
                         const struct position *next)
{
	uint32_t end = bytecode_end(vm, at->prototype);
	uint32_t here, there;

	if (next->prototype == at->prototype && next->inlined == at->inlined &&
	    next->index > at->index)
		return use_index(at, at->prototype,
		                 find_allocation(vm, at->prototype, at->index,
		                                 next->index, CHOOSE_FIRST));
	here = find_allocation(vm, at->prototype, at->index, end, CHOOSE_FIRST);
	there = find_allocation(vm, next->prototype, 1, next->index,
	                        next->inlined < at->inlined ? CHOOSE_LAST
	                                                    : CHOOSE_FIRST);
	if (next->inlined > at->inlined ||
	    rank_at(vm, at->prototype, here) < RANK_STORE)
		return use_index(at, next->prototype, there) ||
		       use_index(at, at->prototype, here);
	return use_index(at, at->prototype, here);
}

static void find_position(const struct vm *vm, uint64_t trace,
                          uint32_t snapshot, struct position *at)
{
	struct position next;
	bool found;

	if (read_position(vm, trace, snapshot + 1, &next))
		found = find_between(vm, at, &next);
	else
		found = use_index(
			at, at->prototype,
			find_allocation(vm, at->prototype, at->index,
		                        bytecode_end(vm, at->prototype),
		                        CHOOSE_FIRST));
	if (found && rank_at(vm, at->prototype, at->index) == RANK_CALL)
		find_in_called(vm, trace, snapshot, at);
}

/* The function that a trace works in at an address, and its instruction. */
static bool read_trace_place(const struct vm *vm, uint64_t trace,
                             uint64_t address, struct position *position)
{
	uint32_t snapshot;

	if (!trace_snapshot_at(vm, trace, address - 1, &snapshot) ||
	    !read_position(vm, trace, snapshot, position))
		return false;
	find_position(vm, trace, snapshot, position);
	return true;
}

static void fill_trace_place(struct running_cache *cache, const struct vm *vm,
                             uint64_t trace, uint64_t address,
                             struct place *place)
{
	struct position position = {0};
	uint32_t line = 0;

	if (read_trace_place(vm, trace, address, &position))
		line = prototype_line(vm->layout, position.prototype,
		                      position.index);
	watch(cache, trace);
	if (line)
		watch(cache, position.prototype);
	*place = (struct place){
		.address = address,
		.owner = trace,
		.prototype = position.prototype,
		.line = line,
		.generation = cache->generation,
	};
}

static void use_trace(struct running_cache *cache, const struct vm *vm,
                      uint64_t cframe, struct running *running)
{
	uint64_t trace = trace_object(vm, running->trace_number);
	struct place *place;
	uint64_t address;

	if (!trace) {
		running->trace_number = 0;
		return;
	}
	running->kind = RUNNING_TRACE;
	running->value = running->trace_number;
	running->trace_mark = find_mark(cache, trace);
	if (!read_return_address(vm, cframe, trace, &address))
		return;
	place = &cache->places[hash(address) % PLACES];
	if (place->address != address || place->owner != trace ||
	    place->generation != cache->generation)
		fill_trace_place(cache, vm, trace, address, place);
	if (!place->line)
		return;
	running->kind = RUNNING_LUA;
	running->value = place->prototype;
	running->line = place->line;
	running->mark = find_mark(cache, place->prototype);
}

/* ---- all together ----------------------------------------------------------- */

/* The running coroutine and the VM's C frame that it runs on. */
static bool read_thread(struct running_cache *cache, const struct vm *vm,
                        uint64_t *thread, uint64_t *cframe)
{
	const struct vm_layout *layout = vm->layout;

	if (!load_reference(layout,
	                    vm->global_state + layout->global.current_thread,
	                    thread))
		return false;
	if (*thread != cache->thread) {
		if (!vm_owns_thread(vm, *thread))
			return false;
		watch(cache, *thread);
		cache->thread = *thread;
	}
	if (!load_u64(*thread + layout->object.thread.cframe, cframe))
		return false;
	*cframe &= CFRAME_MASK;
	return *cframe != 0;
}

/* While a trace is recorded, the interpreter executes what is recorded in this
 * state, too. The recorder has a C frame without a Lua frame of its own. */
static bool recorder_runs(const struct vm *vm, uint64_t cframe)
{
	uint32_t result_count;

	return !load_u32(cframe + vm->layout->cframe.result_count,
	                 &result_count) ||
	       (int32_t)result_count < 0;
}

void running_find(struct running_cache *cache, const struct vm *vm,
                  struct running *running)
{
	int32_t vmstate = vm_read_state(vm);
	uint64_t cframe, base;

	*running = (struct running){.kind = RUNNING_INTERNAL};
	if (vmstate < 0 && vmstate != ~VMSTATE_INTERP &&
	    vmstate != ~VMSTATE_C && vmstate != ~VMSTATE_RECORD)
		return;
	if (cache->generation == 0)
		cache->generation = 1;
	if (!read_thread(cache, vm, &running->coroutine, &cframe)) {
		running->coroutine = 0;
		return;
	}
	if (vmstate == ~VMSTATE_RECORD && recorder_runs(vm, cframe))
		return;
	if (vmstate >= 0) {
		running->trace_number = (uint32_t)vmstate;
		use_trace(cache, vm, cframe, running);
		return;
	}
	if (load_reference(vm->layout,
	                   running->coroutine + vm->layout->object.thread.base,
	                   &base) &&
	    use_frame(cache, vm, cframe, base - 8, running))
		return;
	running->kind = RUNNING_INTERNAL;
	running->mark = NULL;
}
