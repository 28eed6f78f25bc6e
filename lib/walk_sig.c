// SPDX-License-Identifier: MIT
/*
 * Walk: first all native frames, from the interrupted instruction to the
 * thread's start; then, at each place where the VM was found among them, the
 * Lua frames that run in it. Runs in the signal handler.
 */
#include "walk_sig.h"

/* Of a thread, by the default of RLIMIT_STACK. */
#define STACK_BYTES_MAX (8u << 20)

/* The tail's places are used in turn: it has the outermost frames. */
static void append_native(struct walk *walk, struct native_frame frame)
{
	size_t place = walk->native_count++;

	if (place < WALK_HEAD)
		walk->head[place] = frame;
	else
		walk->tail[(place - WALK_HEAD) % WALK_TAIL] = frame;
}

static void append_code(struct walk *walk, uint64_t address)
{
	append_native(walk, (struct native_frame){.kind = NATIVE_CODE,
	                                          .address = address});
}

static void append_marker(struct walk *walk, enum frame_marker marker)
{
	walk->is_whole = false;
	append_native(walk, (struct native_frame){.kind = NATIVE_MARKER,
	                                          .marker = (uint8_t)marker});
}

static bool append_vm_frame(struct walk *walk, const struct vm_frame *vm_frame)
{
	struct native_frame frame = {.kind = NATIVE_VM,
	                             .index = (uint16_t)walk->vm_frame_count};

	if (walk->vm_frame_count == WALK_VM_FRAMES_MAX)
		return false;
	append_native(walk, frame);
	walk->vm_frames[walk->vm_frame_count++] = *vm_frame;
	return true;
}

static enum frame_marker marker_of(enum unwind_result result)
{
	if (result == UNWIND_BAD_READ)
		return MARKER_HOST_BAD_READ;
	if (result == UNWIND_NO_PROGRESS)
		return MARKER_HOST_NO_PROGRESS;
	return MARKER_HOST_NO_TABLE;
}

/* A native walk under way. */
struct native_walk {
	struct walk *walk;
	struct vm_chain *chain;
	struct cpu_registers *registers;
	bool exact;    /* registers->ip is not a return address */
	bool guessed;  /* so the registers of the next VM frame are not known */
	bool switched; /* the last frame was that of an unwinder, which may have
	                * overwritten itself to go on elsewhere */
};

/* Is the frame VM code because an unwinder pretends to be called by it? Then
 * the stack pointer is not the VM's, and must not be taken for it. */
static bool is_forged(const struct native_walk *native,
                      const struct unwind_rule *rule)
{
	struct vm_chain chain;
	struct cpu_registers registers;
	struct vm_frame frame;

	if (!native->switched)
		return false;
	chain = *native->chain;
	registers = *native->registers;
	return vm_chain_step(&chain, &registers, native->exact, rule, &frame) !=
	       VM_STEP_NOT_OURS;
}

static bool add_vm_frame(struct native_walk *native, struct vm_frame *frame)
{
	if (native->guessed) {
		frame->origin = VM_FRAME_RESYNC;
		frame->rbx = frame->rbp = 0;
	}
	native->guessed = false;
	native->exact = false;
	native->switched = false;
	return append_vm_frame(native->walk, frame);
}

/* Is it an unwinder, with its stack pointer on the way to another frame? */
static bool switches_stack(const struct unwind_tables *tables, uint64_t address)
{
	const struct unwind_rule *rule = unwind_find_rule(tables, address);

	return rule && rule->flags & UNWIND_SWITCH;
}

static bool add_guess(struct native_walk *native)
{
	append_marker(native->walk, MARKER_HOST_GUESSED);
	native->guessed = true;
	native->exact = false;
	native->switched = false;
	return true;
}

/* Goes on behind code without a rule. The VM knows where its frames are, which
 * is better than a scan, but loses the frames in between, which frame pointers
 * may not. False if the walk ends here. */
static bool go_on(struct native_walk *native, enum unwind_result result,
                  bool is_unknown)
{
	const struct unwind_tables *tables = native->walk->rules.tables;
	struct cpu_registers *registers = native->registers;
	uint64_t limit = UINT64_MAX;
	struct vm_frame frame;

	if (is_unknown && switches_stack(tables, registers->ip))
		native->switched = true;
	is_unknown = is_unknown && !native->switched;
	if (is_unknown)
		limit = vm_chain_next_cframe(native->chain);
	if (is_unknown && unwind_guess_by_frame_pointer(tables, registers,
	                                                native->exact, limit))
		return add_guess(native);
	if (vm_chain_resync(native->chain, registers, native->switched,
	                    &frame)) {
		/* To the VM's frame is where an unwinder goes, too. */
		if (!native->switched)
			append_marker(native->walk, marker_of(result));
		return add_vm_frame(native, &frame);
	}
	if (is_unknown && unwind_guess_by_scan(tables, registers, limit))
		return add_guess(native);
	append_marker(native->walk, marker_of(result));
	return false;
}

static struct scratch_registers scratch_of(const ucontext_t *context)
{
	const greg_t *general = context->uc_mcontext.gregs;

	return (struct scratch_registers){
		.rax = (uint64_t)general[REG_RAX],
		.rcx = (uint64_t)general[REG_RCX],
		.rdx = (uint64_t)general[REG_RDX],
	};
}

/* Of a frame that a signal handler of the host stands on, all registers are
 * known: no less than of the innermost one. */
static void enter_interrupted(struct native_walk *native, uint64_t sp)
{
	ucontext_t context;

	if (unwind_signal_context(sp, &context))
		native->chain->scratch = scratch_of(&context);
}

/* One frame outwards. False if it was the last one. */
static bool step_native(struct native_walk *native)
{
	struct cpu_registers *registers = native->registers;
	uint64_t address = native->exact ? registers->ip : registers->ip - 1;
	const struct unwind_rule *rule =
		unwind_cache_find(&native->walk->rules, address);
	enum unwind_result result = UNWIND_NO_TABLE;
	uint64_t sp = registers->sp;
	struct vm_frame frame;
	enum vm_step step = VM_STEP_LOST;
	bool forged = is_forged(native, rule);

	if (!forged)
		step = vm_chain_step(native->chain, registers, native->exact,
		                     rule, &frame);
	if (step == VM_STEP_FRAME)
		return add_vm_frame(native, &frame);
	if (step == VM_STEP_NOT_OURS)
		result = unwind_step(rule, registers);
	if (result == UNWIND_INTERRUPTED)
		enter_interrupted(native, sp);
	if (!forged)
		append_code(native->walk, address);
	if (step == VM_STEP_PLAIN || result == UNWIND_CALLER ||
	    result == UNWIND_INTERRUPTED) {
		native->exact = result == UNWIND_INTERRUPTED;
		native->switched = rule && rule->flags & UNWIND_SWITCH;
		return true;
	}
	return result != UNWIND_END && go_on(native, result, !rule);
}

/* Unwinds natively. Ends at the outermost frame or in a marker. */
static void walk_native(struct walk *walk, struct vm_chain *chain,
                        struct cpu_registers *registers)
{
	struct native_walk native = {
		.walk = walk,
		.chain = chain,
		.registers = registers,
		.exact = true,
	};

	while (step_native(&native))
		if (walk->native_count >= WALK_NATIVE_MAX ||
		    walk->vm_frame_count == WALK_VM_FRAMES_MAX) {
			append_marker(walk, MARKER_TRUNCATED);
			return;
		}
}

static void show_pending(struct walk *walk)
{
	if (walk->has_pending)
		walk->visitor->native(walk->context, walk->pending_address);
	walk->has_pending = false;
}

/* A C function that Lua called is on both stacks: the guest stack names it,
 * the native stack has the code. It is one frame. */
static bool is_body_of(uint64_t address, const struct guest_frame *frame)
{
	uint64_t start, end;

	return (frame->kind == GUEST_C_FUNCTION ||
	        frame->kind == GUEST_FAST_FUNCTION) &&
	       unwind_find_function(address, &start, &end) &&
	       start == frame->c_function;
}

static void show_guest(void *context, const struct guest_frame *frame)
{
	struct walk *walk = context;

	if (walk->segment_starts && walk->has_pending &&
	    is_body_of(walk->pending_address, frame))
		walk->has_pending = false;
	walk->segment_starts = false;
	show_pending(walk);
	walk->visitor->guest(walk->context, frame);
}

static void show_segment(struct walk *walk, size_t index)
{
	enum guest_result result;

	walk->segment_starts = true;
	result = guest_walk_segment(&walk->guest, index, show_guest, walk);
	if (result == GUEST_WHOLE)
		return;
	show_pending(walk);
	walk->visitor->marker(walk->context,
	                      result == GUEST_NO_BASE ? MARKER_GUEST_NO_BASE
	                                              : MARKER_GUEST_BAD_FRAME,
	                      0);
}

/* Lua frames up to those of a VM frame, exclusive: all but this one's are of VM
 * frames that the tail had no place for. */
static void show_segments(struct walk *walk, size_t end)
{
	while (walk->shown_vm_frames < end)
		show_segment(walk, walk->shown_vm_frames++);
}

static void show_frame(struct walk *walk, const struct native_frame *frame)
{
	switch ((enum native_kind)frame->kind) {
	case NATIVE_CODE:
		show_pending(walk);
		walk->pending_address = frame->address;
		walk->has_pending = true;
		break;
	case NATIVE_VM:
		show_segments(walk, frame->index + 1u);
		break;
	case NATIVE_MARKER:
		show_pending(walk);
		walk->visitor->marker(walk->context, frame->marker, 0);
		break;
	}
}

static void show_merged(struct walk *walk)
{
	size_t count = walk->native_count, i;

	walk->has_pending = false;
	walk->shown_vm_frames = 0;
	for (i = 0; i < count && i < WALK_HEAD; i++)
		show_frame(walk, &walk->head[i]);
	if (count > WALK_HEAD + WALK_TAIL) {
		show_pending(walk);
		walk->visitor->marker(walk->context, MARKER_TRUNCATED,
		                      (uint32_t)(count - i - WALK_TAIL));
		i = count - WALK_TAIL;
	}
	for (; i < count; i++)
		show_frame(walk, &walk->tail[(i - WALK_HEAD) % WALK_TAIL]);
	show_segments(walk, walk->vm_frame_count);
	show_pending(walk);
}

/* The innermost VM's; where code without unwind rules hides it, that of the VM
 * expected, if it stands on the stack of this thread and not of another one. */
static int32_t find_state(const struct walk *walk, const struct vm *vm,
                          const struct vm_chain *chain, uint64_t sp)
{
	uint64_t cframe;

	if (walk->vm_frame_count > 0)
		return vm_read_state(walk->vm_frames[0].vm);
	if (walk->is_whole)
		return ~VMSTATE_C;
	cframe = vm_chain_next_cframe(chain);
	return cframe >= sp && cframe - sp < STACK_BYTES_MAX ? vm_read_state(vm)
	                                                     : ~VMSTATE_C;
}

void walk_stack(struct walk *walk, const struct vm *vm,
                const ucontext_t *context, const struct walk_visitor *visitor,
                void *visitor_context, struct walk_facts *facts)
{
	const struct scratch_registers scratch = scratch_of(context);
	struct live_words words = {
		.registers = (uint64_t)&context->uc_mcontext,
		.register_count = sizeof(gregset_t) / sizeof(greg_t),
	};
	struct cpu_registers registers;
	struct vm_chain chain;

	cpu_registers_read(&registers, context);
	words.stack_pointer = registers.sp;
	walk->native_count = 0;
	walk->vm_frame_count = 0;
	walk->is_whole = true;
	walk->visitor = visitor;
	walk->context = visitor_context;
	unwind_cache_begin(&walk->rules);
	vm_chain_begin(&chain, vm, &walk->rules, &scratch);
	walk_native(walk, &chain, &registers);
	guest_walk_begin(&walk->guest, vm, &walk->moved, &words,
	                 walk->vm_frames, walk->vm_frame_count);
	show_merged(walk);
	unwind_cache_end(&walk->rules);
	facts->vm = walk->vm_frame_count > 0 ? walk->vm_frames[0].vm : NULL;
	facts->vmstate = find_state(walk, vm, &chain, words.stack_pointer);
	facts->thread = facts->vm ? walk->vm_frames[0].thread : 0;
	facts->trace_number = walk->guest.trace_number;
}
