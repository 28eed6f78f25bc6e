// SPDX-License-Identifier: MIT
/*
 * The frame that the interpreter executes. Runs in the signal handler.
 *
 * The interpreter keeps its frame base and PC in registers and stores them only
 * now and then. So the frame is found by trying candidates, and one is believed
 * only if frame, link and PC agree.
 */
#include "interpreter_sig.h"

#include <stddef.h>

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

/* As many as a bytecode can number; behind the used ones are the instructions'
 * once more. */
#define DISPATCH_ENTRIES 256

static bool frame_in_stack(const struct vm_layout *layout,
                           const struct lua_stack *stack, uint64_t frame)
{
	return frame >= stack_bottom(layout, stack) && frame < stack->end;
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
	    !lua_link_is_sound(layout, stack, caller, contents.link))
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
	is_linked = is_frame && lua_link_is_sound(layout, stack, choice.frame,
	                                          contents.link);
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

static size_t list_candidates(const struct interpreter_state *state,
                              struct base_candidate *candidates)
{
	const struct vm_frame *vm_frame = state->vm_frame;
	bool running = state->innermost && vm_frame->origin == VM_FRAME_RUNNING;
	/* Computed in 32 bits where references have as many. */
	uint64_t negated = vm_frame->vm->layout->gc64
	                           ? -vm_frame->rbx
	                           : -(uint32_t)vm_frame->rbx;
	size_t count = 0;

	if (running)
		candidates[count++] = (struct base_candidate){
			.base = vm_frame->rdx, .is_register = true};
	/* C helpers of the interpreter keep the base here. */
	if (state->innermost)
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
		(struct base_candidate){.base = state->base, .is_stored = true};
	return count;
}

static void improve(struct base_choice *best,
                    const struct interpreter_state *state,
                    const struct base_candidate *candidate, uint64_t pc)
{
	struct base_choice choice = judge_base(state->vm->layout, state->stack,
	                                       candidate->base, pc);

	if (choice.score && candidate->is_register)
		choice.score += BASE_REGISTER;
	if (choice.score > best->score)
		*best = choice;
}

/* While a function is entered from C, returns there or calls a metamethod, the
 * PC register holds how its frame is linked. Finds the PC by that; 0 if it
 * cannot be told, as where one of several return instructions is executed. */
static uint64_t find_lost_pc(const struct interpreter_state *state,
                             uint64_t frame)
{
	const struct vm_layout *layout = state->vm->layout;
	const struct vm_frame *vm_frame = state->vm_frame;
	struct lua_function function;
	struct lua_frame contents;
	uint64_t continuation, pc;
	uint32_t position;

	if (!lua_frame_read(layout, frame, &contents) ||
	    !lua_function_read(layout, contents.function, &function) ||
	    function.id != FUNCTION_LUA)
		return 0;
	if (vm_frame->rbx < FRAME_DISTANCE_MAX &&
	    lua_continuation_read(layout,
	                          frame + (vm_frame->rbx & ~UINT64_C(7)),
	                          &continuation, &pc) &&
	    prototype_position(layout, function.prototype, pc, &position))
		return pc;
	if ((vm_frame->rbx ^ contents.link) & ~UINT64_C(7))
		return 0;
	if (vm_frame->rbp == contents.function)
		return function.prototype + layout->object.prototype.bytes;
	return trace_find_return(state->vm, function.prototype);
}

/* A fast function that was called by a continuation frame, or by pcall, stores
 * its results over the link of its frame; the stored PC is a copy of the link
 * then. Finds the frame below. */
static struct base_choice find_lost_link(const struct interpreter_state *state)
{
	const struct vm_layout *layout = state->vm->layout;
	struct base_choice choice = {0, 0, BASE_WRONG};
	uint64_t continuation, pc = 0;

	if (state->pc >= FRAME_DISTANCE_MAX ||
	    !frame_in_stack(layout, state->stack, state->base - 8))
		return choice;
	switch (link_type(state->pc)) {
	case LINK_CONTINUATION:
		if (!lua_continuation_read(layout, state->base - 8,
		                           &continuation, &pc) ||
		    continuation == CONTINUATION_FFI_CALLBACK)
			return choice;
		break;
	case LINK_PCALL:
	case LINK_PCALL_HOOK:
		break;
	default:
		return choice;
	}
	choice = judge_base(layout, state->stack,
	                    state->base - (state->pc & ~UINT64_C(7)), pc);
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
static bool has_returned(const struct interpreter_state *state,
                         uint64_t address)
{
	const struct vm *vm = state->vm;
	struct lua_function function;
	uint64_t ip = state->vm_frame->ip;

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
static uint64_t whole_base(const struct interpreter_state *state)
{
	const struct vm_layout *layout = state->vm->layout;
	const struct vm_frame *vm_frame = state->vm_frame;
	const uint64_t base = vm_frame->rdx, pc = vm_frame->rbx;
	struct lua_frame contents;
	uint64_t caller;

	if (!layout->gc64 || !frame_in_stack(layout, state->stack, base - 8) ||
	    !lua_frame_read(layout, base - 8, &contents))
		return base;
	if (vm_code_links(state->vm->code, vm_frame->ip)) {
		if (pc < FRAME_DISTANCE_MAX)
			return base - (pc & ~UINT64_C(7));
	} else if (link_type(contents.link) != LINK_LUA) {
		/* Returning to C, it has the caller's base there. */
		return base - (contents.link & ~UINT64_C(7)) == pc ? pc : base;
	} else if (contents.link != pc ||
	           !has_returned(state, contents.function)) {
		return base;
	}
	caller = frame_in_transition(layout, state->stack, base - 8, pc);
	return caller ? caller + 8 : base;
}

bool interpreter_find_frame(const struct interpreter_state *state,
                            uint64_t *frame, uint64_t *pc)
{
	struct base_candidate candidates[BASE_CANDIDATES_MAX];
	size_t count, i;
	struct base_choice best = {0, 0, BASE_WRONG};
	bool running = state->vm_frame->origin == VM_FRAME_RUNNING;

	count = list_candidates(state, candidates);
	if (candidates[0].is_register)
		candidates[0].base = whole_base(state);
	for (i = 0; i < count; i++) {
		improve(&best, state, &candidates[i], state->vm_frame->rbx);
		/* While the interpreter runs its PC register is the truth. */
		if (!running || candidates[i].is_stored)
			improve(&best, state, &candidates[i], state->pc);
	}
	if (running && best.score == BASE_WRONG)
		best = find_lost_link(state);
	*frame = best.frame;
	*pc = best.pc;
	if (running && best.score % BASE_REGISTER == BASE_POSSIBLE)
		*pc = find_lost_pc(state, best.frame);
	return best.score != BASE_WRONG;
}
