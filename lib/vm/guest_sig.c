// SPDX-License-Identifier: MIT
/*
 * The guest stack. Runs in the signal handler.
 *
 * Where the innermost frame of a coroutine is depends on what runs: a trace or
 * the interpreter. Further out the links of the Lua stack lead the way.
 */
#include "guest_sig.h"

#include "interpreter_sig.h"
#include "trace_place_sig.h"

/* Slots at the start of a block that an allocator may use when it is free. */
#define ALLOCATOR_SLOTS_MAX 8

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
                                        int32_t vmstate, uint64_t base,
                                        guest_visitor visit, void *context)
{
	struct trace_frames inlined;
	struct trace_start start;
	uint64_t trace;
	uint32_t i;

	if (base < walk->stack.start + 8 * frame_slots(walk->vm->layout) ||
	    base > walk->stack.end)
		return GUEST_NO_BASE;
	/* Which functions are inlined cannot be told. */
	if (!walk->vm->traces_known)
		return GUEST_BAD_FRAME;
	walk->frame = base - 8;
	walk->compiled = true;
	if (vm_frame->trace_number &&
	    vm_is_same(walk->vm, walk->vm_frames[0].vm))
		walk->trace_number = vm_frame->trace_number;
	if (!trace_place_read(walk->vm, vm_frame, vmstate, walk->frame, &trace,
	                      &inlined))
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

/* Does the function that has written the frames of a trace return to the exit
 * handler? Its C frame is at the stack pointer, and not linked any more. */
static bool returns_to_exit(const struct guest_walk *walk,
                            const struct vm_frame *vm_frame)
{
	const struct cframe_layout *layout = &walk->vm->layout->cframe;
	const struct vm_frame left = {.cframe = walk->words.stack_pointer};
	uint64_t thread, previous;

	return vm_frame->origin == VM_FRAME_EXIT && !vm_frame->interrupted &&
	       frameless_limit(walk, &left) &&
	       load_reference(walk->vm->layout, left.cframe + layout->thread,
	                      &thread) &&
	       thread == vm_frame->thread &&
	       load_u64(left.cframe + layout->previous, &previous) &&
	       (previous & CFRAME_MASK) == vm_frame->cframe;
}

/* VM state, as the VM frame at index left it: in Tarantool's builds such a return
 * is as if to the interpreter, for some instructions. */
static int32_t read_state(const struct guest_walk *walk, size_t index)
{
	if (!index && returns_to_exit(walk, &walk->vm_frames[index]))
		return ~VMSTATE_EXIT;
	return vm_read_state(walk->vm);
}

/* Finds the innermost frame of the coroutine. *skip: this VM frame has none,
 * try again at the next one. */
static enum guest_result start_coroutine(struct guest_walk *walk, size_t index,
                                         bool *skip, guest_visitor visit,
                                         void *context)
{
	const struct vm_layout *layout = walk->vm->layout;
	struct vm_frame vm_frame = walk->vm_frames[index];
	struct interpreter_state state = {.vm = walk->vm,
	                                  .stack = &walk->stack,
	                                  .vm_frame = &vm_frame,
	                                  .innermost = true};
	uint64_t jit_base = 0;
	int32_t vmstate;
	size_t i;

	*skip = false;
	if (!lua_stack_read(layout, walk->thread, &walk->stack) ||
	    !load_u64(walk->thread + layout->object.thread.base, &state.base))
		return GUEST_NO_BASE;
	/* Registers and jit_base speak of the innermost coroutine's present
	 * run only, not of an earlier one further out. */
	for (i = 0; i < index; i++)
		if (walk->vm_frames[i].thread != walk->thread &&
		    vm_is_same(walk->vm_frames[i].vm, walk->vm))
			state.innermost = false;
	if (state.innermost)
		jit_base = trace_base(walk->vm);
	moved_stack_follow(walk->moved, &walk->stack, &state.base, &jit_base);
	if (is_frameless(walk, index, state.base)) {
		*skip = true;
		return GUEST_WHOLE;
	}
	/* Behind a skipped VM frame the interpreter is not what runs. */
	if (index && vm_frame.origin == VM_FRAME_RUNNING)
		vm_frame.origin = VM_FRAME_CALLING;
	vmstate = read_state(walk, index);
	if (vm_frame.origin == VM_FRAME_TRACE ||
	    (vm_frame.origin == VM_FRAME_EXIT &&
	     (jit_base || vmstate == ~VMSTATE_EXIT)))
		return start_in_trace(walk, &vm_frame, vmstate,
		                      jit_base ? jit_base : state.base, visit,
		                      context);
	state.pc = read_stored_pc(walk, &vm_frame);
	return interpreter_find_frame(&state, &walk->frame, &walk->pc)
	               ? GUEST_WHOLE
	               : GUEST_NO_BASE;
}

/* The continuation frame of a metamethod, or of an FFI callback. Reads the PC
 * that the interrupted function goes on at. */
static bool is_ffi_callback(const struct guest_walk *walk, uint64_t *pc)
{
	uint64_t continuation;

	return lua_continuation_read(walk->vm->layout, walk->frame,
	                             &continuation, pc) &&
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
	if (!lua_link_is_sound(layout, &walk->stack, walk->frame,
	                       contents->link))
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
