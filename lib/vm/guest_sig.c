// SPDX-License-Identifier: MIT
/*
 * The guest stack. Runs in the signal handler.
 *
 * The interpreter keeps its frame base and PC in registers and stores them
 * only now and then. So the innermost frame of a coroutine is found by trying
 * candidates, and one is believed only if frame, link and PC agree. Further
 * out the links of the Lua stack lead the way.
 */
#include "guest_sig.h"

#include "code.h"
#include "trace_sig.h"

/* How much a candidate for the frame base is worth. */
enum base_score {
	BASE_WRONG,
	BASE_POSSIBLE, /* a frame, but what runs in it is not known */
	BASE_FUNCTION, /* a C or fast function, or a Lua one without its PC */
	BASE_EXACT,    /* a Lua function whose bytecode holds the PC */
	/* The interpreter's own base register, when it holds a frame at all,
	 * beats any stored value: a recursive function leaves stored values
	 * that look right and are old. */
	BASE_REGISTER = 10,
};

struct base_candidate {
	uint64_t base;
	bool is_register; /* rdx while the interpreter runs */
	bool is_stored;   /* lua_State.base, which goes with the stored PC */
};

#define BASE_CANDIDATES_MAX 6

/* What is known of the innermost frame of a coroutine. */
struct base_choice {
	uint64_t frame;
	uint64_t pc;
	int score;
};

/* Results of `return to C` code reach at most this far. */
#define FRAME_DISTANCE_MAX (1 << 24)

/* PCs and other pointers are never this small. */
#define POINTER_MIN 65536

/* As many as a bytecode can number; behind the used ones are the instructions'
 * once more. */
#define DISPATCH_ENTRIES 256

/* Slots at the start of a block that an allocator may use when it is free. */
#define ALLOCATOR_SLOTS_MAX 8

/* The value of a continuation that marks an FFI callback. */
#define CONTINUATION_FFI_CALLBACK 1

static bool frame_in_stack(const struct vm_layout *layout,
                           const struct lua_stack *stack, uint64_t frame)
{
	return frame >= stack_bottom(layout, stack) && frame < stack->end;
}

/* Does the link of a frame lead to another plausible frame? */
static bool link_is_sound(const struct vm_layout *layout,
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

/* A call or a return is half done: the PC is behind a call instruction, and the
 * frame that executes it lies where that instruction says, below the candidate.
 * Returns that frame, or 0. */
static uint64_t frame_in_transition(const struct vm_layout *layout,
                                    const struct lua_stack *stack,
                                    uint64_t frame, uint64_t pc)
{
	struct lua_function function;
	struct lua_frame contents;
	uint32_t base_register, position;
	uint64_t caller;

	if (pc < POINTER_MIN || !pc_behind_call(pc, &base_register))
		return 0;
	caller = frame - 8 * (frame_slots(layout) + base_register);
	if (caller <= stack_bottom(layout, stack) ||
	    !frame_in_stack(layout, stack, caller) ||
	    !lua_frame_read(layout, caller, &contents) ||
	    contents.function == stack->thread ||
	    !lua_function_read(layout, contents.function, &function) ||
	    function.id != FUNCTION_LUA ||
	    !prototype_position(layout, function.prototype, pc, &position) ||
	    !link_is_sound(layout, stack, caller, contents.link))
		return 0;
	return caller;
}

/* Scores a base and PC pair; the frame may turn out to be its caller's. */
static struct base_choice judge_base(const struct vm_layout *layout,
                                     const struct lua_stack *stack,
                                     uint64_t base, uint64_t pc)
{
	struct base_choice choice = {base - 8, pc, BASE_WRONG};
	struct lua_function function = {.id = FUNCTION_LUA};
	bool is_frame, is_linked;
	struct lua_frame contents;
	uint64_t caller;
	uint32_t position;

	if ((base & 7) || base > stack->end ||
	    base < stack->start + 8 * frame_slots(layout))
		return choice;
	is_frame = lua_frame_read(layout, choice.frame, &contents);
	if (is_frame && contents.function == stack->thread) {
		if (choice.frame == stack_bottom(layout, stack))
			choice.score = BASE_POSSIBLE;
		return choice;
	}
	is_frame = is_frame &&
	           lua_function_read(layout, contents.function, &function);
	is_linked = is_frame &&
	            link_is_sound(layout, stack, choice.frame, contents.link);
	if (is_linked && function.id != FUNCTION_LUA) {
		choice.score = BASE_FUNCTION;
		return choice;
	}
	if (is_linked && pc &&
	    prototype_position(layout, function.prototype, pc, &position)) {
		choice.score = BASE_EXACT;
		return choice;
	}
	caller = frame_in_transition(layout, stack, choice.frame, pc);
	if (caller) {
		choice.frame = caller;
		choice.score = BASE_EXACT;
	} else if (is_linked) {
		choice.score = BASE_POSSIBLE;
	}
	return choice;
}

static size_t list_candidates(const struct vm_frame *vm_frame, bool innermost,
                              uint64_t stored_base,
                              struct base_candidate *candidates)
{
	bool running = innermost && vm_frame->origin == VM_FRAME_RUNNING;
	/* Computed in 32 bits where references have as many. */
	uint64_t negated = vm_frame->vm->layout->gc64
	                           ? -vm_frame->rbx
	                           : -(uint32_t)vm_frame->rbx;
	size_t count = 0;

	if (running)
		candidates[count++] = (struct base_candidate){
			.base = vm_frame->rdx, .is_register = true};
	/* C helpers of the interpreter keep the base here. */
	if (innermost)
		candidates[count++] =
			(struct base_candidate){.base = vm_frame->rbp};
	if (running) {
		/* The code that returns to C computes the caller's base
		 * step by step, in these. */
		candidates[count++] =
			(struct base_candidate){.base = vm_frame->rbx};
		candidates[count++] = (struct base_candidate){.base = negated};
		if (vm_frame->rbx < FRAME_DISTANCE_MAX)
			candidates[count++] = (struct base_candidate){
				.base = vm_frame->rdx -
			                (vm_frame->rbx & ~UINT64_C(7))};
	}
	candidates[count++] =
		(struct base_candidate){.base = stored_base, .is_stored = true};
	return count;
}

static void improve(struct base_choice *best, const struct vm_layout *layout,
                    const struct lua_stack *stack,
                    const struct base_candidate *candidate, uint64_t pc)
{
	struct base_choice choice =
		judge_base(layout, stack, candidate->base, pc);

	if (choice.score && candidate->is_register)
		choice.score += BASE_REGISTER;
	if (choice.score > best->score)
		*best = choice;
}

/* Where the function goes on that the continuation frame above has interrupted.
 * *continuation: what is to be done with the result. */
static bool read_continuation(const struct vm_layout *layout, uint64_t frame,
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

/* While a function is entered from C, returns there or calls a metamethod, the
 * PC register holds how its frame is linked. Finds the PC by that; 0 if it
 * cannot be told, as where one of several return instructions is executed. */
static uint64_t find_lost_pc(const struct guest_walk *walk,
                             const struct vm_frame *vm_frame, uint64_t frame)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct lua_function function;
	struct lua_frame contents;
	uint64_t continuation, pc;
	uint32_t position;

	if (!lua_frame_read(layout, frame, &contents) ||
	    !lua_function_read(layout, contents.function, &function) ||
	    function.id != FUNCTION_LUA)
		return 0;
	if (vm_frame->rbx < FRAME_DISTANCE_MAX &&
	    read_continuation(layout, frame + (vm_frame->rbx & ~UINT64_C(7)),
	                      &continuation, &pc) &&
	    prototype_position(layout, function.prototype, pc, &position))
		return pc;
	if ((vm_frame->rbx ^ contents.link) & ~UINT64_C(7))
		return 0;
	if (vm_frame->rbp == contents.function)
		return function.prototype + layout->object.prototype.bytes;
	return trace_find_return(walk->vm, function.prototype);
}

/* A fast function that was called by a continuation frame, or by pcall, stores
 * its results over the link of its frame; the stored PC is a copy of the link
 * then. Finds the frame below. */
static struct base_choice find_lost_link(const struct guest_walk *walk,
                                         uint64_t stored_base,
                                         uint64_t stored_pc)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct base_choice choice = {0, 0, BASE_WRONG};
	uint64_t continuation, pc = 0;

	if (stored_pc >= FRAME_DISTANCE_MAX ||
	    !frame_in_stack(layout, &walk->stack, stored_base - 8))
		return choice;
	switch (link_type(stored_pc)) {
	case LINK_CONTINUATION:
		if (!read_continuation(layout, stored_base - 8, &continuation,
		                       &pc) ||
		    continuation == CONTINUATION_FFI_CALLBACK)
			return choice;
		break;
	case LINK_PCALL:
	case LINK_PCALL_HOOK:
		break;
	default:
		return choice;
	}
	choice = judge_base(layout, &walk->stack,
	                    stored_base - (stored_pc & ~UINT64_C(7)), pc);
	if (choice.score < BASE_FUNCTION)
		choice.score = BASE_WRONG;
	return choice;
}

/* Machine code of the bytecode instruction of that number. Each C and fast
 * function starts with an instruction that is all of it. */
static bool read_dispatch(const struct vm *vm, uint32_t number,
                          uint64_t *address)
{
	return load_u64(vm->global_state - vm->layout->gg_global +
	                        vm->layout->gg_dispatch + UINT64_C(8) * number,
	                address);
}

/* Is code of another instruction between start and ip? */
static bool starts_between(const struct vm *vm, uint64_t start, uint64_t ip)
{
	uint64_t address;
	uint32_t i;

	for (i = 0; i < DISPATCH_ENTRIES; i++)
		if (read_dispatch(vm, i, &address) && address > start &&
		    address <= ip)
			return true;
	return false;
}

/* Is the code at ip that of the C or fast function? */
static bool runs_at(const struct vm *vm, uint64_t function, uint64_t ip)
{
	uint64_t bytecode, start;
	uint32_t instruction;

	return load_reference(vm->layout,
	                      function + vm->layout->object.function.bytecode,
	                      &bytecode) &&
	       load_u32(bytecode, &instruction) &&
	       read_dispatch(vm, instruction & 0xff, &start) && ip >= start &&
	       !starts_between(vm, start, ip);
}

/* Is the code at ip that of a fast function, up to the last one? Behind all
 * others, theirs is in the order of their instructions at its start. */
static bool is_fast_code(const struct vm *vm, uint64_t ip)
{
	uint64_t start;

	return read_dispatch(vm, vm->layout->bytecode_count, &start) &&
	       ip >= start && starts_between(vm, ip, vm->code->end);
}

/* Has the function whose frame the interpreter is in returned, so that one of
 * its results may lie in the frame, and be a function? The PC is the caller's
 * then, as the frame's link is. */
static bool has_returned(const struct guest_walk *walk,
                         const struct vm_frame *vm_frame, uint64_t address)
{
	const struct vm *vm = walk->vm;
	struct lua_function function;
	uint64_t ip = vm_frame->ip;

	if (vm_code_moves_results(vm->code, ip))
		return true;
	if (!lua_function_read(vm->layout, address, &function))
		return false;
	if (function.id != FUNCTION_LUA)
		return !runs_at(vm, address, ip);
	return is_fast_code(vm, ip) && !vm_code_goes_on(vm->code, ip);
}

/* The base in the interpreter's register, or that of the caller's frame while the
 * one in the register is not whole: it does not have its link yet, or its
 * function no longer. With GC64 the rest of it may look as if it had. */
static uint64_t whole_base(const struct guest_walk *walk,
                           const struct vm_frame *vm_frame)
{
	const struct vm_layout *layout = walk->vm->layout;
	const uint64_t base = vm_frame->rdx, pc = vm_frame->rbx;
	struct lua_frame contents;
	uint64_t caller;

	if (!layout->gc64 || !frame_in_stack(layout, &walk->stack, base - 8) ||
	    !lua_frame_read(layout, base - 8, &contents))
		return base;
	if (vm_code_links(walk->vm->code, vm_frame->ip)) {
		if (pc < FRAME_DISTANCE_MAX)
			return base - (pc & ~UINT64_C(7));
	} else if (link_type(contents.link) != LINK_LUA) {
		/* Returning to C, it has the caller's base there. */
		return base - (contents.link & ~UINT64_C(7)) == pc ? pc : base;
	} else if (contents.link != pc ||
	           !has_returned(walk, vm_frame, contents.function)) {
		return base;
	}
	caller = frame_in_transition(layout, &walk->stack, base - 8, pc);
	return caller ? caller + 8 : base;
}

/* Finds frame and PC where the interpreter or C code called by it runs. */
static bool start_in_interpreter(struct guest_walk *walk,
                                 const struct vm_frame *vm_frame,
                                 bool innermost, uint64_t stored_base,
                                 uint64_t stored_pc)
{
	struct base_candidate candidates[BASE_CANDIDATES_MAX];
	size_t count, i;
	struct base_choice best = {0, 0, BASE_WRONG};
	bool running = vm_frame->origin == VM_FRAME_RUNNING;

	count = list_candidates(vm_frame, innermost, stored_base, candidates);
	if (candidates[0].is_register)
		candidates[0].base = whole_base(walk, vm_frame);
	for (i = 0; i < count; i++) {
		improve(&best, walk->vm->layout, &walk->stack, &candidates[i],
		        vm_frame->rbx);
		/* While the interpreter runs its PC register is the truth. */
		if (!running || candidates[i].is_stored)
			improve(&best, walk->vm->layout, &walk->stack,
			        &candidates[i], stored_pc);
	}
	if (running && best.score == BASE_WRONG)
		best = find_lost_link(walk, stored_base, stored_pc);
	walk->frame = best.frame;
	walk->pc = best.pc;
	if (running && best.score % BASE_REGISTER == BASE_POSSIBLE)
		walk->pc = find_lost_pc(walk, vm_frame, best.frame);
	return best.score != BASE_WRONG;
}

/* Base of the frame that the running trace counts from, 0 if none runs. */
static uint64_t read_jit_base(const struct vm *vm)
{
	uint64_t jit_base;

	return load_reference(vm->layout,
	                      vm->global_state + vm->layout->global.jit_base,
	                      &jit_base)
	               ? jit_base
	               : 0;
}

/* A trace is being left: which one, and by which exit? The exit handler notes it
 * in the JIT's state some instructions after it has said that it runs. */
static bool find_exit(const struct guest_walk *walk,
                      const struct vm_frame *vm_frame, uint64_t *trace,
                      uint32_t *snapshot)
{
	const struct vm *vm = walk->vm;
	uint64_t jit =
		vm->global_state - vm->layout->gg_global + vm->layout->gg_jit;
	int32_t vmstate = vm_read_state(vm);
	uint32_t number;

	if (vmstate >= 0) {
		*trace = trace_object(vm, (uint32_t)vmstate);
		if (!*trace)
			return false;
		if (trace_exit_at(vm, *trace, vm_frame->ip, vm_frame->cframe,
		                  snapshot))
			return true;
		*snapshot = (uint32_t)vm_frame->rax;
		return vm_frame->interrupted &&
		       *snapshot < trace_snapshot_count(vm, *trace);
	}
	if (vmstate != ~VMSTATE_EXIT)
		return false;
	number = (uint32_t)vm_frame->rcx;
	*snapshot = (uint32_t)vm_frame->rax;
	if (!(vm_frame->interrupted && read_jit_base(vm)) &&
	    (!load_u32(jit + vm->layout->jit.exit_parent, &number) ||
	     !load_u32(jit + vm->layout->jit.exit_number, snapshot)))
		return false;
	*trace = trace_object(vm, number);
	return *trace != 0;
}

/* The trace that runs, or that is being left, and the snapshot that says which
 * frames it has inlined. */
static bool find_snapshot(struct guest_walk *walk,
                          const struct vm_frame *vm_frame, uint64_t *trace,
                          uint32_t *snapshot)
{
	*trace = 0;
	if (!vm_frame->trace_number)
		return find_exit(walk, vm_frame, trace, snapshot);
	if (vm_is_same(walk->vm, walk->vm_frames[0].vm))
		walk->trace_number = vm_frame->trace_number;
	*trace = trace_object(walk->vm, vm_frame->trace_number);
	return *trace &&
	       trace_snapshot_at(walk->vm, *trace, vm_frame->ip, snapshot);
}

static void visit_prototype(const struct guest_walk *walk, uint64_t prototype,
                            uint64_t pc, bool compiled, guest_visitor visit,
                            void *context)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct guest_frame frame = {.vm = walk->vm,
	                            .kind = GUEST_LUA_FUNCTION,
	                            .prototype = prototype,
	                            .compiled = compiled,
	                            .call = walk->call};
	uint32_t position;

	if (pc && prototype_position(layout, prototype, pc, &position)) {
		frame.pc = pc;
		frame.line = prototype_line(layout, prototype, position);
	}
	visit(context, &frame);
}

/* Shows what runs at an address; false if that is not a function. */
static bool visit_function(const struct guest_walk *walk, uint64_t address,
                           uint64_t pc, bool compiled, guest_visitor visit,
                           void *context)
{
	struct guest_frame frame = {.vm = walk->vm, .compiled = compiled};
	struct lua_function function;

	if (!lua_function_read(walk->vm->layout, address, &function))
		return false;
	if (function.id == FUNCTION_LUA) {
		visit_prototype(walk, function.prototype, pc, compiled, visit,
		                context);
		return true;
	}
	frame.kind = function.id == FUNCTION_C ? GUEST_C_FUNCTION
	                                       : GUEST_FAST_FUNCTION;
	frame.c_function = function.c_function;
	frame.fast_number = function.id;
	visit(context, &frame);
	return true;
}

static void visit_inlined(const struct guest_walk *walk, uint64_t trace,
                          const struct trace_frame *inlined,
                          guest_visitor visit, void *context)
{
	const struct guest_frame unknown = {.vm = walk->vm,
	                                    .kind = GUEST_UNKNOWN_FUNCTION,
	                                    .compiled = true};
	uint64_t prototype;

	if (visit_function(walk, inlined->function, inlined->pc, true, visit,
	                   context))
		return;
	if (trace_find_prototype(walk->vm, trace, inlined->pc, &prototype))
		visit_prototype(walk, prototype, inlined->pc, true, visit,
		                context);
	else
		visit(context, &unknown);
}

/* Is pc in the function of the frame? */
static bool frame_holds(const struct guest_walk *walk, uint64_t frame,
                        uint64_t pc)
{
	struct lua_function function;
	struct lua_frame contents;
	uint32_t position;

	return lua_frame_read(walk->vm->layout, frame, &contents) &&
	       lua_function_read(walk->vm->layout, contents.function,
	                         &function) &&
	       function.id == FUNCTION_LUA &&
	       prototype_position(walk->vm->layout, function.prototype, pc,
	                          &position);
}

/* While a trace is left its frames are written to the stack, and in the end (in
 * builds without GC64: one by one) lua_State.base goes up. Which of the inlined
 * frames is at base? inlined->count if it is none. */
static uint32_t find_restored(const struct guest_walk *walk, uint64_t base,
                              uint64_t exit_base,
                              const struct trace_frames *inlined)
{
	struct lua_frame contents;
	uint32_t i;

	if (base == exit_base)
		return inlined->count;
	for (i = 0; i < inlined->count; i++)
		if (exit_base + 8 * inlined->frames[i].slots == base)
			return i;
	/* The trace used the register otherwise, or the stack has moved. */
	if (!lua_frame_read(walk->vm->layout, base - 8, &contents))
		return inlined->count;
	for (i = 0; i < inlined->count; i++)
		if (contents.function == inlined->frames[i].function &&
		    contents.link == inlined->frames[i].link)
			return i;
	return inlined->count;
}

static void drop_restored(struct guest_walk *walk,
                          const struct vm_frame *vm_frame, uint64_t trace,
                          struct trace_frames *inlined)
{
	uint64_t exit_base = trace_exit_base(walk->vm, trace, vm_frame->cframe);
	uint32_t i = find_restored(walk, walk->frame + 8, exit_base, inlined);

	if (i == inlined->count)
		return;
	inlined->count = i;
	inlined->base_pc = inlined->frames[i].pc;
	inlined->base_function = 0;
}

/* The frames at the trace's present instruction. jit_base moves a little before
 * the snapshot that goes with it comes into force. */
static bool read_inlined(struct guest_walk *walk,
                         const struct vm_frame *vm_frame, uint64_t trace,
                         uint32_t snapshot, struct trace_frames *inlined)
{
	struct trace_frames next;

	if (!trace_read_frames(walk->vm, trace, snapshot, inlined))
		return false;
	if (vm_frame->origin == VM_FRAME_EXIT) {
		if (!read_jit_base(walk->vm))
			drop_restored(walk, vm_frame, trace, inlined);
	} else if (trace_has_handed_over(walk->vm, trace, vm_frame->ip)) {
		inlined->count = 0;
		inlined->base_pc = inlined->top_pc;
		inlined->base_function = 0;
	} else if (!inlined->count &&
	           !frame_holds(walk, walk->frame, inlined->base_pc) &&
	           trace_read_frames(walk->vm, trace, snapshot + 1, &next) &&
	           !next.base_function &&
	           frame_holds(walk, walk->frame, next.base_pc)) {
		/* It has just returned from the frame it started in. */
		inlined->base_pc = next.base_pc;
		inlined->base_function = 0;
	}
	return true;
}

/* How the inlined function of this number was called: by the next one, or by
 * that of the frame at jit_base. */
static struct guest_call inlined_call(const struct guest_walk *walk,
                                      const struct trace_frames *inlined,
                                      uint32_t i)
{
	struct guest_call call = {.pc = inlined->base_pc,
	                          .function = inlined->base_function};
	struct lua_frame contents;

	if (link_type(inlined->frames[i].link) != LINK_LUA)
		return (struct guest_call){0};
	if (i + 1 < inlined->count) {
		call.pc = inlined->frames[i + 1].pc;
		call.function = inlined->frames[i + 1].function;
	} else if (!call.function &&
	           lua_frame_read(walk->vm->layout, walk->frame, &contents)) {
		call.function = contents.function;
	}
	return call;
}

/* Shows the inlined frames, then stands on the frame at jit_base. */
static enum guest_result start_in_trace(struct guest_walk *walk,
                                        const struct vm_frame *vm_frame,
                                        uint64_t base, guest_visitor visit,
                                        void *context)
{
	struct trace_frames inlined = {.count = 0, .base_function = 0};
	struct trace_start start;
	uint32_t snapshot = 0, i;
	uint64_t trace;

	if (base < walk->stack.start + 8 * frame_slots(walk->vm->layout) ||
	    base > walk->stack.end)
		return GUEST_NO_BASE;
	/* Which functions are inlined cannot be told. */
	if (!walk->vm->traces_known)
		return GUEST_BAD_FRAME;
	walk->frame = base - 8;
	walk->compiled = true;
	if (find_snapshot(walk, vm_frame, &trace, &snapshot) &&
	    !read_inlined(walk, vm_frame, trace, snapshot, &inlined))
		return GUEST_BAD_FRAME;
	for (i = 0; i < inlined.count; i++) {
		walk->call = inlined_call(walk, &inlined, i);
		visit_inlined(walk, trace, &inlined.frames[i], visit, context);
	}
	walk->pc = inlined.base_pc;
	walk->base_function = inlined.base_function;
	if (!walk->pc && trace && trace_read_start(walk->vm, trace, &start))
		walk->pc = start.pc + BYTECODE_BYTES;
	return GUEST_WHOLE;
}

/* The recorder, the exit handler and lua_cpcall() enter the VM without a Lua
 * frame; the C frame then holds how much of the Lua stack was in use. Address
 * of the first slot that belongs to this VM frame, 0 for an ordinary entry. */
static uint64_t frameless_limit(const struct guest_walk *walk,
                                const struct vm_frame *vm_frame)
{
	const struct vm_layout *layout = walk->vm->layout;
	uint32_t word;
	int32_t result_count;

	if (!load_u32(vm_frame->cframe + layout->cframe.result_count, &word))
		return 0;
	result_count = (int32_t)word;
	if (result_count >= 0)
		return 0;
	return walk->stack.start + (uint64_t)(-(int64_t)result_count);
}

static uint64_t read_stored_pc(const struct guest_walk *walk,
                               const struct vm_frame *vm_frame)
{
	uint64_t pc;

	if (!load_reference(walk->vm->layout,
	                    vm_frame->cframe + walk->vm->layout->cframe.pc,
	                    &pc))
		return 0;
	return pc;
}

/* Index of the next VM frame further out that the coroutine runs in, with no
 * other of its VM between; vm_frame_count: there is none. */
static size_t next_of_coroutine(const struct guest_walk *walk, size_t index)
{
	while (++index < walk->vm_frame_count)
		if (vm_is_same(walk->vm_frames[index].vm, walk->vm))
			return walk->vm_frames[index].thread == walk->thread
			               ? index
			               : walk->vm_frame_count;
	return index;
}

/* Is the VM frame one without Lua frames of its own, inside another of the
 * same coroutine? Then the innermost Lua frame is that other one's. */
static bool is_frameless(const struct guest_walk *walk, size_t index,
                         uint64_t stored_base)
{
	uint64_t limit = frameless_limit(walk, &walk->vm_frames[index]);
	size_t next = next_of_coroutine(walk, index);

	if (!limit || next == walk->vm_frame_count)
		return false;
	/* Traces do not keep the top of the stack, which the limit is, until
	 * the exit handler has corrected it. */
	return stored_base - 8 < limit ||
	       (walk->vm_frames[next].origin == VM_FRAME_EXIT &&
	        vm_read_state(walk->vm) == ~VMSTATE_EXIT);
}

/* Finds the innermost frame of the coroutine. *skip: this VM frame has none,
 * try again at the next one. */
static enum guest_result start_coroutine(struct guest_walk *walk, size_t index,
                                         bool *skip, guest_visitor visit,
                                         void *context)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct vm_frame vm_frame = walk->vm_frames[index];
	uint64_t stored_base, jit_base = 0;
	bool innermost = true;
	size_t i;

	*skip = false;
	if (!lua_stack_read(layout, walk->thread, &walk->stack) ||
	    !load_u64(walk->thread + layout->object.thread.base, &stored_base))
		return GUEST_NO_BASE;
	/* Registers and jit_base speak of the innermost coroutine's present
	 * run only, not of an earlier one further out. */
	for (i = 0; i < index; i++)
		if (walk->vm_frames[i].thread != walk->thread &&
		    vm_is_same(walk->vm_frames[i].vm, walk->vm))
			innermost = false;
	if (innermost)
		jit_base = read_jit_base(walk->vm);
	moved_stack_follow(walk->moved, &walk->stack, &stored_base, &jit_base);
	if (is_frameless(walk, index, stored_base)) {
		*skip = true;
		return GUEST_WHOLE;
	}
	/* Behind a skipped VM frame the interpreter is not what runs. */
	if (index && vm_frame.origin == VM_FRAME_RUNNING)
		vm_frame.origin = VM_FRAME_CALLING;
	if (vm_frame.origin == VM_FRAME_TRACE ||
	    (vm_frame.origin == VM_FRAME_EXIT &&
	     (jit_base || vm_read_state(walk->vm) == ~VMSTATE_EXIT)))
		return start_in_trace(walk, &vm_frame,
		                      jit_base ? jit_base : stored_base, visit,
		                      context);
	return start_in_interpreter(walk, &vm_frame, innermost, stored_base,
	                            read_stored_pc(walk, &vm_frame))
	               ? GUEST_WHOLE
	               : GUEST_NO_BASE;
}

/* The continuation frame of a metamethod, or of an FFI callback. Reads the PC
 * that the interrupted function goes on at. */
static bool is_ffi_callback(const struct guest_walk *walk, uint64_t *pc)
{
	uint64_t continuation;

	return read_continuation(walk->vm->layout, walk->frame, &continuation,
	                         pc) &&
	       continuation == CONTINUATION_FFI_CALLBACK;
}

/* Goes to the caller's frame. *border: native code is in between. */
static bool step_down(struct guest_walk *walk, uint64_t link, bool *border)
{
	uint64_t previous =
		lua_frame_previous(walk->vm->layout, walk->frame, link);

	*border = false;
	if (previous >= walk->frame || previous < walk->stack.start)
		return false;
	switch (link_type(link)) {
	case LINK_LUA:
		walk->pc = link;
		break;
	case LINK_VARARG: /* the function is below once more, at this PC */
		break;
	case LINK_CONTINUATION:
		*border = is_ffi_callback(walk, &walk->pc);
		if (*border)
			walk->pc = 0;
		break;
	case LINK_C:
	case LINK_C_PROTECTED:
		*border = true;
		walk->pc = 0;
		break;
	default:
		walk->pc = 0;
	}
	walk->frame = previous;
	return true;
}

/* Simulates the assignment of the coroutine's frames to the VM frames from
 * index on: does each get its segment, and do they use up the stack? */
static bool segments_fit(const struct guest_walk *walk, size_t index)
{
	struct guest_walk trial = *walk;
	uint64_t bottom = stack_bottom(walk->vm->layout, &walk->stack);
	struct lua_frame contents;
	uint64_t limit;
	bool border;

	for (; index < walk->vm_frame_count;
	     index = next_of_coroutine(walk, index)) {
		limit = frameless_limit(walk, &walk->vm_frames[index]);
		if (limit && trial.frame < limit)
			continue;
		if (trial.frame <= bottom)
			return false;
		for (border = false; !border && trial.frame > bottom;)
			if (!lua_frame_read(walk->vm->layout, trial.frame,
			                    &contents) ||
			    !step_down(&trial, contents.link, &border))
				return false;
	}
	return trial.frame <= bottom;
}

/* C code has just entered the VM, or is about to get control back: the VM frame
 * is there, its first Lua frame is not. The frames found belong further out. */
static bool segment_is_empty(const struct guest_walk *walk, size_t index)
{
	size_t next = next_of_coroutine(walk, index);

	return next < walk->vm_frame_count &&
	       walk->vm_frames[index].origin != VM_FRAME_TRACE &&
	       !segments_fit(walk, index) && segments_fit(walk, next);
}

/* The stack is being moved, and what is left of it where it was is broken here:
 * goes on in the new place. */
static bool change_to_copy(struct guest_walk *walk)
{
	uint64_t start = moved_stack_find_copy(&walk->words, walk->vm->layout,
	                                       &walk->stack);

	if (!start)
		return false;
	walk->frame += start - walk->stack.start;
	walk->stack.end += start - walk->stack.start;
	walk->stack.start = start;
	return true;
}

/* The stack may be a free block by now, in which the allocator keeps words of its
 * own: numbers that may look like links. Is the frame among them, and broken? */
static bool is_overwritten(const struct guest_walk *walk,
                           const struct lua_frame *contents)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct lua_frame below;

	if (walk->frame >= walk->stack.start + 8 * ALLOCATOR_SLOTS_MAX)
		return false;
	if (!link_is_sound(layout, &walk->stack, walk->frame, contents->link))
		return true;
	return link_type(contents->link) == LINK_VARARG &&
	       !(lua_frame_read(layout,
	                        lua_frame_previous(layout, walk->frame,
	                                           contents->link),
	                        &below) &&
	         below.function == contents->function);
}

/* Shows the present frame, if that is a call. */
static bool visit_frame(struct guest_walk *walk, struct lua_frame *contents,
                        guest_visitor visit, void *context)
{
	if (!lua_frame_read(walk->vm->layout, walk->frame, contents) ||
	    is_overwritten(walk, contents))
		return false;
	/* The lower copy of a vararg frame and dummies are not calls */
	if (contents->function == walk->stack.thread ||
	    link_type(contents->link) == LINK_VARARG)
		return true;
	if (walk->base_function)
		contents->function = walk->base_function;
	walk->base_function = 0;
	walk->call = (struct guest_call){.frame = walk->frame};
	if (link_type(contents->link) == LINK_LUA)
		walk->call.pc = contents->link;
	if (!visit_function(walk, contents->function, walk->pc, walk->compiled,
	                    visit, context))
		return false;
	walk->compiled = false;
	return true;
}

static enum guest_result walk_frames(struct guest_walk *walk,
                                     guest_visitor visit, void *context)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct lua_frame contents;
	bool border = false;

	while (!border && walk->frame > stack_bottom(layout, &walk->stack)) {
		if (!visit_frame(walk, &contents, visit, context) &&
		    !(change_to_copy(walk) &&
		      visit_frame(walk, &contents, visit, context)))
			return GUEST_BAD_FRAME;
		if (!step_down(walk, contents.link, &border) &&
		    !(change_to_copy(walk) &&
		      lua_frame_read(layout, walk->frame, &contents) &&
		      step_down(walk, contents.link, &border)))
			return GUEST_BAD_FRAME;
	}
	walk->active = walk->frame > stack_bottom(layout, &walk->stack);
	return GUEST_WHOLE;
}

void guest_walk_begin(struct guest_walk *walk, const struct vm *vm,
                      struct moved_stacks *moved,
                      const struct live_words *words,
                      const struct vm_frame *vm_frames, size_t count)
{
	walk->vm = vm;
	walk->moved = moved;
	walk->words = *words;
	walk->vm_frames = vm_frames;
	walk->vm_frame_count = count;
	walk->thread = 0;
	walk->compiled = false;
	walk->base_function = 0;
	walk->waiting_count = 0;
	walk->trace_number = 0;
}

static void keep_place(struct guest_walk *walk)
{
	if (!walk->thread || walk->waiting_count == WAITING_MAX)
		return;
	walk->waiting[walk->waiting_count++] = (struct guest_place){
		.thread = walk->thread,
		.stack = walk->stack,
		.frame = walk->frame,
		.pc = walk->pc,
		.started = walk->started,
		.active = walk->active,
	};
}

/* Takes the place of a coroutine that was walked before, if it was. */
static bool find_place(struct guest_walk *walk, uint64_t thread)
{
	for (size_t i = walk->waiting_count; i-- > 0;) {
		const struct guest_place *place = &walk->waiting[i];

		if (place->thread != thread)
			continue;
		walk->thread = thread;
		walk->stack = place->stack;
		walk->frame = place->frame;
		walk->pc = place->pc;
		walk->started = place->started;
		walk->active = place->active;
		walk->waiting[i] = walk->waiting[--walk->waiting_count];
		return true;
	}
	return false;
}

/* Another coroutine, which resumed the one walked so far; or another VM, whose
 * coroutine may have been walked before and goes on where it stood. */
static void change_coroutine(struct guest_walk *walk,
                             const struct vm_frame *vm_frame)
{
	bool same_vm = !walk->thread || vm_is_same(vm_frame->vm, walk->vm);

	if (!same_vm)
		keep_place(walk);
	walk->vm = vm_frame->vm;
	walk->compiled = false;
	walk->base_function = 0;
	if (walk->waiting_count > 0 && find_place(walk, vm_frame->thread))
		return;
	walk->thread = vm_frame->thread;
	walk->started = false;
	walk->active = false;
}

enum guest_result guest_walk_segment(struct guest_walk *walk, size_t index,
                                     guest_visitor visit, void *context)
{
	const struct vm_frame *vm_frame = &walk->vm_frames[index];
	enum guest_result result = GUEST_WHOLE;
	uint64_t limit;
	bool skip;

	if (vm_frame->thread != walk->thread)
		change_coroutine(walk, vm_frame);
	if (!walk->started) {
		result = start_coroutine(walk, index, &skip, visit, context);
		if (skip)
			return GUEST_WHOLE;
		walk->started = true;
		walk->active = result == GUEST_WHOLE;
		if (walk->active && segment_is_empty(walk, index))
			return GUEST_WHOLE;
	} else if (walk->active) {
		limit = frameless_limit(walk, vm_frame);
		if (limit && walk->frame < limit) {
			walk->pc = 0;
			return GUEST_WHOLE;
		}
	}
	if (!walk->active)
		return result;
	/* A hook, finalizer or metamethod called from C: the interrupted
	 * function's PC is in its C frame. */
	if (!walk->pc)
		walk->pc = read_stored_pc(walk, vm_frame);
	result = walk_frames(walk, visit, context);
	if (result != GUEST_WHOLE)
		walk->active = false;
	return result;
}
