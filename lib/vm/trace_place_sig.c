// SPDX-License-Identifier: MIT
/*
 * Where in a trace the VM is. Runs in the signal handler.
 */
#include "trace_place_sig.h"

/* A trace is being left: which one, and by which exit? The exit handler notes it
 * in the JIT's state some instructions after it has said that it runs. */
static bool find_exit(const struct vm *vm, const struct vm_frame *vm_frame,
                      int32_t vmstate, uint64_t *trace, uint32_t *snapshot)
{
	uint64_t jit =
		vm->global_state - vm->layout->gg_global + vm->layout->gg_jit;
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
	if (!(vm_frame->interrupted && trace_base(vm)) &&
	    (!load_u32(jit + vm->layout->jit.exit_parent, &number) ||
	     !load_u32(jit + vm->layout->jit.exit_number, snapshot)))
		return false;
	*trace = trace_object(vm, number);
	return *trace != 0;
}

/* The trace that runs, or that is being left, and the snapshot that says which
 * frames it has inlined. */
static bool find_snapshot(const struct vm *vm, const struct vm_frame *vm_frame,
                          int32_t vmstate, uint64_t *trace, uint32_t *snapshot)
{
	*trace = 0;
	if (!vm_frame->trace_number)
		return find_exit(vm, vm_frame, vmstate, trace, snapshot);
	*trace = trace_object(vm, vm_frame->trace_number);
	return *trace && trace_snapshot_at(vm, *trace, vm_frame->ip, snapshot);
}

/* Is pc in the function of the frame? */
static bool frame_holds(const struct vm *vm, uint64_t frame, uint64_t pc)
{
	struct lua_function function;
	struct lua_frame contents;
	uint32_t position;

	return lua_frame_read(vm->layout, frame, &contents) &&
	       lua_function_read(vm->layout, contents.function, &function) &&
	       function.id == FUNCTION_LUA &&
	       prototype_position(vm->layout, function.prototype, pc,
	                          &position);
}

/* While a trace is left its frames are written to the stack, and in the end (in
 * builds without GC64: one by one) lua_State.base goes up. Which of the inlined
 * frames is at base? inlined->count if it is none. */
static uint32_t find_restored(const struct vm *vm, uint64_t base,
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
	if (!lua_frame_read(vm->layout, base - 8, &contents))
		return inlined->count;
	for (i = 0; i < inlined->count; i++)
		if (contents.function == inlined->frames[i].function &&
		    contents.link == inlined->frames[i].link)
			return i;
	return inlined->count;
}

static void drop_restored(const struct vm *vm, const struct vm_frame *vm_frame,
                          uint64_t frame, uint64_t trace,
                          struct trace_frames *inlined)
{
	uint64_t exit_base = trace_exit_base(vm, trace, vm_frame->cframe);
	uint32_t i = find_restored(vm, frame + 8, exit_base, inlined);

	if (i == inlined->count)
		return;
	inlined->count = i;
	inlined->base_pc = inlined->frames[i].pc;
	inlined->base_function = 0;
}

/* The frames at the trace's present instruction. jit_base moves a little before
 * the snapshot that goes with it comes into force. */
static bool read_inlined(const struct vm *vm, const struct vm_frame *vm_frame,
                         uint64_t frame, uint64_t trace, uint32_t snapshot,
                         struct trace_frames *inlined)
{
	struct trace_frames next;

	if (!trace_read_frames(vm, trace, snapshot, inlined))
		return false;
	if (vm_frame->origin == VM_FRAME_EXIT) {
		if (!trace_base(vm))
			drop_restored(vm, vm_frame, frame, trace, inlined);
	} else if (trace_has_handed_over(vm, trace, vm_frame->ip)) {
		inlined->count = 0;
		inlined->base_pc = inlined->top_pc;
		inlined->base_function = 0;
	} else if (!inlined->count &&
	           !frame_holds(vm, frame, inlined->base_pc) &&
	           trace_read_frames(vm, trace, snapshot + 1, &next) &&
	           !next.base_function &&
	           frame_holds(vm, frame, next.base_pc)) {
		/* It has just returned from the frame it started in. */
		inlined->base_pc = next.base_pc;
		inlined->base_function = 0;
	}
	return true;
}

bool trace_place_read(const struct vm *vm, const struct vm_frame *vm_frame,
                      int32_t vmstate, uint64_t frame, uint64_t *trace,
                      struct trace_frames *inlined)
{
	uint32_t snapshot;

	inlined->count = 0;
	inlined->base_pc = 0;
	inlined->base_function = 0;
	return !find_snapshot(vm, vm_frame, vmstate, trace, &snapshot) ||
	       read_inlined(vm, vm_frame, frame, *trace, snapshot, inlined);
}
