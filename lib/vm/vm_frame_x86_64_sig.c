// SPDX-License-Identifier: MIT
/*
 * The VM's frames on the native stack, x86-64. Runs in the signal handler.
 *
 * The whole assembler part of the VM runs on one C frame of fixed size, made on
 * entry; traces run below the same frame. Each entry links its frame to the
 * one before: that chain tells true frames from what error unwinding left.
 */
#include "vm_frame_sig.h"

#include "code.h"
#include "object_sig.h"
#include "registry_sig.h"
#include "trace_sig.h"

/* Stack between an innermost ip without a frame of its own and the C frame that
 * it runs on: the exit handler's register save area, C code of a trace. */
#define EXIT_STACK_BYTES_MAX      16384
#define TRACE_STACK_BYTES_MAX     70000
#define RESYNC_STACK_BYTES_MAX    (1 << 20)
#define ABANDONED_STACK_BYTES_MAX 65536
#define RESYNC_COUNT_MAX          8

/* Two more registers that a trace saves, from the C frame's address. */
#define TRACE_R12 0
#define TRACE_R13 (-8)

#define INSTRUCTION_RET 0xc3

void vm_chain_begin(struct vm_chain *chain, const struct vm *vm,
                    struct unwind_cache *rules,
                    const struct scratch_registers *scratch)
{
	/* Not all of it: the places are many, and rarely used. */
	chain->now = (struct vm_chain_place){.vm = vm};
	chain->other_count = 0;
	chain->rules = rules;
	chain->scratch = *scratch;
	chain->resync_count = 0;
	chain->vmstate = vm_read_state(vm);
}

int32_t vm_read_state(const struct vm *vm)
{
	int32_t extra = vm->layout->interpreter_state_count - 1;
	uint32_t word;
	int32_t state;

	if (!load_u32(vm->global_state + vm->layout->global.vmstate, &word))
		return ~VMSTATE_C;
	state = (int32_t)word;
	if (state >= 0)
		return state;
	return ~state <= extra ? ~VMSTATE_INTERP : state + extra;
}

bool vm_owns_thread(const struct vm *vm, uint64_t thread)
{
	uint64_t global;

	return thread && is_object(vm->layout, thread, TYPE_THREAD) &&
	       load_reference(vm->layout,
	                      thread + vm->layout->object.thread.global,
	                      &global) &&
	       global == vm->global_state;
}

/* The C frame that a lua_State says it runs on; 0 while it is being left. */
static bool read_cframe(const struct vm *vm, uint64_t thread, uint64_t *cframe)
{
	if (!load_u64(thread + vm->layout->object.thread.cframe, cframe))
		return false;
	*cframe &= CFRAME_MASK;
	return true;
}

/* The lua_State that the VM last entered, and its C frame. */
static bool read_current(const struct vm *vm, uint64_t *thread,
                         uint64_t *cframe)
{
	return load_reference(vm->layout,
	                      vm->global_state +
	                              vm->layout->global.current_thread,
	                      thread) &&
	       vm_owns_thread(vm, *thread) &&
	       read_cframe(vm, *thread, cframe) && *cframe;
}

/* Could the word be the return address of a call? */
static bool is_code(const struct vm_chain *chain, uint64_t address)
{
	return unwind_cache_find(chain->rules, address - 1) ||
	       trace_code_holds(chain->now.vm, address);
}

/* Leaves a frame that has pushed nothing but pushed bytes behind the return
 * address, rbp the first of them. */
static bool pop_frame(struct cpu_registers *registers, int distance)
{
	static const struct {
		int distance;
		enum saved_register saved;
	} pushes[] = {
		{16, SAVED_RBP},
		{24, SAVED_RBX},
		{32, SAVED_R15},
		{40, SAVED_R14},
	};
	struct cpu_registers caller = *registers;
	size_t i;

	caller.sp = registers->sp + (uint64_t)distance;
	if (!load_u64(caller.sp - 8, &caller.ip))
		return false;
	for (i = 0; i < sizeof(pushes) / sizeof(pushes[0]); i++)
		if (distance >= pushes[i].distance &&
		    !load_u64(caller.sp - (uint64_t)pushes[i].distance,
		              &caller.saved[pushes[i].saved]))
			return false;
	*registers = caller;
	return true;
}

/* Is a C frame of the VM at address, the one that has to be there? */
static bool check_cframe(const struct vm_chain *chain, uint64_t address,
                         uint64_t *thread)
{
	const struct vm *vm = chain->now.vm;
	uint64_t cframe;

	if (!load_reference(vm->layout, address + vm->layout->cframe.thread,
	                    thread) ||
	    !vm_owns_thread(vm, *thread) || !read_cframe(vm, *thread, &cframe))
		return false;
	if (chain->now.started && *thread == chain->now.last_thread)
		return address == chain->now.next_cframe;
	return cframe == address || !cframe;
}

/* Goes on in another VM; the place in the one before is kept. */
static bool enter_vm(struct vm_chain *chain, const struct vm *vm)
{
	struct vm_chain_place before = chain->now;
	size_t i;

	for (i = 0; i < chain->other_count; i++)
		if (vm_is_same(chain->others[i].vm, vm))
			break;
	if (i == VMS_PER_STACK_MAX)
		return false;
	if (i == chain->other_count) {
		chain->others[i] = (struct vm_chain_place){.vm = vm};
		chain->other_count++;
	}
	chain->now = chain->others[i];
	chain->others[i] = before;
	chain->vmstate = vm_read_state(vm);
	return true;
}

/* The VM, other than the present one, whose C frame is at address by the
 * lua_State in it. NULL: none. kind: of the code that made the frame. */
static const struct vm *vm_of_cframe(const struct vm_chain *chain,
                                     const struct vm *kind, uint64_t address)
{
	uint64_t thread, global, cframe;
	const struct vm *vm;

	if (!load_reference(kind->layout, address + kind->layout->cframe.thread,
	                    &thread) ||
	    !is_object(kind->layout, thread, TYPE_THREAD) ||
	    !load_reference(kind->layout,
	                    thread + kind->layout->object.thread.global,
	                    &global) ||
	    global == chain->now.vm->global_state ||
	    !read_cframe(kind, thread, &cframe))
		return NULL;
	vm = vm_registry_see(kind, global);
	/* Its coroutine is known to be in it, or was seen to be further in. */
	if (!vm || cframe == address || !cframe)
		return vm;
	for (size_t i = 0; i < chain->other_count; i++)
		if (vm_is_same(chain->others[i].vm, vm) &&
		    chain->others[i].started &&
		    (chain->others[i].last_thread != thread ||
		     chain->others[i].next_cframe == address))
			return vm;
	return NULL;
}

/* The VM whose dispatch table r14 points to: always that of the running VM, but
 * at its edges. NULL: none, or the present one. */
static const struct vm *vm_of_dispatch(const struct vm_chain *chain,
                                       const struct vm *kind,
                                       const struct cpu_registers *registers)
{
	uint64_t global = registers->saved[SAVED_R14] -
	                  kind->layout->gg_dispatch + kind->layout->gg_global;

	return global == chain->now.vm->global_state
	               ? NULL
	               : vm_registry_see(kind, global);
}

/* Is the code that of another VM than the present one? Then goes on there. */
static bool switch_vm(struct vm_chain *chain, const struct vm *kind,
                      const struct cpu_registers *registers)
{
	const struct vm *vm = vm_of_cframe(chain, kind, registers->sp);

	if (!vm)
		vm = vm_of_cframe(chain, kind, registers->sp + 8);
	if (!vm)
		vm = vm_of_dispatch(chain, kind, registers);
	return vm && enter_vm(chain, vm);
}

/* Leaves the C frame of the VM: fills the chain and the caller's registers. */
static bool leave_cframe(struct vm_chain *chain,
                         struct cpu_registers *registers,
                         const struct vm_frame *frame)
{
	const struct cframe_layout *layout = &chain->now.vm->layout->cframe;
	struct cpu_registers caller = *registers;
	uint64_t previous = 0;

	if (frame->origin == VM_FRAME_TRACE &&
	    (!load_u64(frame->cframe + TRACE_R12, &caller.saved[SAVED_R12]) ||
	     !load_u64(frame->cframe + (uint64_t)TRACE_R13,
	               &caller.saved[SAVED_R13])))
		return false;
	caller.sp = frame->cframe;
	if (!pop_frame(&caller, layout->bytes) ||
	    !load_u64(frame->cframe + layout->previous, &previous) ||
	    !caller.ip)
		return false;
	*registers = caller;
	chain->now.started = true;
	chain->now.next_cframe = previous & CFRAME_MASK;
	chain->now.last_thread = frame->thread;
	return true;
}

static enum vm_step finish_frame(struct vm_chain *chain,
                                 struct cpu_registers *registers,
                                 struct vm_frame *frame)
{
	frame->vm = chain->now.vm;
	frame->rbx = registers->saved[SAVED_RBX];
	frame->rbp = registers->saved[SAVED_RBP];
	frame->rdx = frame->origin == VM_FRAME_RUNNING ? chain->scratch.rdx : 0;
	if (!vm_owns_thread(chain->now.vm, frame->thread) ||
	    !leave_cframe(chain, registers, frame))
		return VM_STEP_LOST;
	return VM_STEP_FRAME;
}

/* The C frame that code without one runs on: the next of the chain, or for the
 * innermost code the one that the VM says is current. */
static bool find_cframe_outside(const struct vm_chain *chain,
                                const struct cpu_registers *registers,
                                uint64_t distance_max, struct vm_frame *frame)
{
	if (chain->now.started) {
		frame->cframe = chain->now.next_cframe;
		frame->thread = chain->now.last_thread;
		if (!frame->cframe)
			return false;
	} else if (!read_current(chain->now.vm, &frame->thread,
	                         &frame->cframe)) {
		return false;
	}
	return frame->cframe - registers->sp < distance_max;
}

/* Is a trace being left? Then the stack holds its registers. */
static bool trace_exits(const struct vm_chain *chain)
{
	uint64_t jit_base;

	return chain->vmstate == ~VMSTATE_EXIT ||
	       !load_reference(chain->now.vm->layout,
	                       chain->now.vm->global_state +
	                               chain->now.vm->layout->global.jit_base,
	                       &jit_base) ||
	       jit_base;
}

/* The interpreter makes room for two registers just before it jumps into a
 * trace; base and PC are still in theirs. */
static bool enters_trace(const struct vm_chain *chain)
{
	uint64_t jit_base;

	return chain->vmstate == ~VMSTATE_INTERP &&
	       load_reference(chain->now.vm->layout,
	                      chain->now.vm->global_state +
	                              chain->now.vm->layout->global.jit_base,
	                      &jit_base) &&
	       jit_base && jit_base == chain->scratch.rdx;
}

/* Where the interpreter or C code called by it runs, the C frame is at the stack
 * pointer. */
static bool find_cframe_here(const struct vm_chain *chain,
                             const struct cpu_registers *registers, bool exact,
                             struct vm_frame *frame)
{
	/* Small assembler subroutines push one return address more. */
	for (frame->cframe = registers->sp; frame->cframe <= registers->sp + 8;
	     frame->cframe += 8)
		if (check_cframe(chain, frame->cframe, &frame->thread))
			return true;
	frame->cframe = registers->sp + TRACE_FRAME_BYTES;
	return exact && enters_trace(chain) &&
	       check_cframe(chain, frame->cframe, &frame->thread);
}

/* VM code without a C frame of its own: the one it runs on is further out. */
static enum vm_step step_exit(struct vm_chain *chain,
                              struct cpu_registers *registers, bool exact,
                              struct vm_frame *frame)
{
	if (!find_cframe_outside(chain, registers, EXIT_STACK_BYTES_MAX, frame))
		return VM_STEP_LOST;
	frame->origin = VM_FRAME_EXIT;
	frame->interrupted = exact;
	frame->rax = chain->scratch.rax;
	frame->rcx = chain->scratch.rcx;
	return finish_frame(chain, registers, frame);
}

/* The stack has registers of the trace on top, which are not to be read. */
static enum vm_step step_exit_handler(struct vm_chain *chain,
                                      const struct vm *kind,
                                      struct cpu_registers *registers,
                                      bool exact, struct vm_frame *frame)
{
	const struct vm *vm = vm_of_dispatch(chain, kind, registers);

	if (vm && !enter_vm(chain, vm))
		return VM_STEP_LOST;
	return step_exit(chain, registers, exact, frame);
}

static enum vm_step step_vm_code(struct vm_chain *chain, const struct vm *kind,
                                 struct cpu_registers *registers, bool exact,
                                 struct vm_frame *frame)
{
	const int frame_bytes = kind->layout->cframe.bytes;
	int distance =
		exact ? vm_code_frame_edge(kind->code, registers->ip) : 0;
	uint64_t return_address;

	if (distance)
		return pop_frame(registers, distance) ? VM_STEP_PLAIN
		                                      : VM_STEP_LOST;
	if (exact && vm_code_is_unlinked(kind->code, registers->ip))
		return pop_frame(registers, frame_bytes) ? VM_STEP_PLAIN
		                                         : VM_STEP_LOST;
	if (vm_code_exits(kind->code, frame->ip))
		return step_exit_handler(chain, kind, registers, exact, frame);
	frame->origin = exact ? VM_FRAME_RUNNING : VM_FRAME_CALLING;
	if (find_cframe_here(chain, registers, exact, frame))
		return finish_frame(chain, registers, frame);
	if (switch_vm(chain, kind, registers) &&
	    find_cframe_here(chain, registers, exact, frame))
		return finish_frame(chain, registers, frame);
	/* A helper such as floor, called from C or from a trace. */
	if (exact && load_u64(registers->sp, &return_address) &&
	    is_code(chain, return_address)) {
		chain->scratch.rdx = 0;
		return pop_frame(registers, 8) ? VM_STEP_PLAIN : VM_STEP_LOST;
	}
	/* An FFI callback builds a frame like the others before it links it. */
	if (!trace_exits(chain) &&
	    load_u64(registers->sp + (uint64_t)frame_bytes - 8,
	             &return_address) &&
	    is_code(chain, return_address))
		return pop_frame(registers, frame_bytes) ? VM_STEP_PLAIN
		                                         : VM_STEP_LOST;
	return step_exit(chain, registers, exact, frame);
}

/* The FFI call helper has an unwind rule of its own, which does not hold
 * before it has set up rbp and at its return. */
static bool ffi_call_edge(const struct vm *vm, uint64_t ip, int *distance)
{
	if (ip < vm->code->end || ip >= vm->code->ffi_call_end)
		return false;
	if (ip == vm->code->end + 1)
		*distance = 16;
	else if (ip == vm->code->end || *(const uint8_t *)ip == INSTRUCTION_RET)
		*distance = 8;
	else
		return false;
	return true;
}

static enum vm_step step_trace(struct vm_chain *chain,
                               struct cpu_registers *registers,
                               struct vm_frame *frame)
{
	uint32_t hint = chain->vmstate > 0 ? (uint32_t)chain->vmstate : 0;

	frame->origin = VM_FRAME_TRACE;
	frame->trace_number = trace_find(chain->now.vm, frame->ip, hint);
	if (!find_cframe_outside(chain, registers, TRACE_STACK_BYTES_MAX,
	                         frame))
		return VM_STEP_LOST;
	return finish_frame(chain, registers, frame);
}

/* In traces r14 is as in the interpreter, with 64 bit references. */
static bool enter_vm_of_trace(struct vm_chain *chain,
                              const struct cpu_registers *registers,
                              uint64_t address)
{
	const struct vm *vm = vm_of_dispatch(chain, chain->now.vm, registers);

	return vm && trace_code_holds(vm, address) && enter_vm(chain, vm);
}

/* Code of no object that nobody describes, as the stubs of FFI callbacks: the
 * return address is on top, or below a pushed rbp. */
static enum vm_step step_stub(struct vm_chain *chain,
                              struct cpu_registers *registers)
{
	uint64_t word;
	int distance;

	if (unwind_tables_hold(chain->rules->tables, registers->ip))
		return VM_STEP_LOST;
	for (distance = 8; distance <= 16; distance += 8)
		if (load_u64(registers->sp + (uint64_t)distance - 8, &word) &&
		    is_code(chain, word))
			return pop_frame(registers, distance) ? VM_STEP_PLAIN
			                                      : VM_STEP_LOST;
	return VM_STEP_LOST;
}

enum vm_step vm_chain_step(struct vm_chain *chain,
                           struct cpu_registers *registers, bool exact,
                           const struct unwind_rule *rule,
                           struct vm_frame *frame)
{
	const struct vm *kind;
	int distance;

	*frame = (struct vm_frame){.ip = exact ? registers->ip
	                                       : registers->ip - 1};
	kind = vm_registry_kind(chain->now.vm, frame->ip);
	if (kind)
		return step_vm_code(chain, kind, registers, exact, frame);
	if (exact && ffi_call_edge(chain->now.vm, registers->ip, &distance))
		return pop_frame(registers, distance) ? VM_STEP_PLAIN
		                                      : VM_STEP_LOST;
	if (rule)
		return VM_STEP_NOT_OURS;
	if (trace_code_holds(chain->now.vm, frame->ip) ||
	    enter_vm_of_trace(chain, registers, frame->ip))
		return step_trace(chain, registers, frame);
	return exact ? step_stub(chain, registers) : VM_STEP_LOST;
}

uint64_t vm_chain_next_cframe(const struct vm_chain *chain)
{
	const struct cpu_registers bottom = {.sp = 0};
	struct vm_frame frame;

	return find_cframe_outside(chain, &bottom, UINT64_MAX, &frame)
	               ? frame.cframe
	               : UINT64_MAX;
}

/* An error has ended the coroutine: it no longer says where its C frame is, but
 * the frame is there, and is where an unwinder goes. It has none before it, and
 * the VM has called C from it: an unwinder's copies of registers look like one. */
static bool find_abandoned(const struct vm_chain *chain,
                           const struct cpu_registers *registers,
                           struct vm_frame *frame)
{
	const struct vm_layout *layout = chain->now.vm->layout;
	const uint64_t end = registers->sp + ABANDONED_STACK_BYTES_MAX;
	uint64_t address, thread, previous, cframe;
	uint64_t return_address, inner_return_address;

	if (chain->now.started ||
	    !load_reference(layout,
	                    chain->now.vm->global_state +
	                            layout->global.current_thread,
	                    &frame->thread) ||
	    !vm_owns_thread(chain->now.vm, frame->thread) ||
	    !read_cframe(chain->now.vm, frame->thread, &cframe) || cframe)
		return false;
	for (address = registers->sp; address < end; address += 8) {
		if (!load_reference(layout, address + layout->cframe.thread,
		                    &thread))
			return false;
		if (thread != frame->thread ||
		    !load_u64(address + layout->cframe.previous, &previous) ||
		    previous & CFRAME_MASK ||
		    !load_u64(address + (uint64_t)layout->cframe.bytes - 8,
		              &return_address) ||
		    !is_code(chain, return_address) ||
		    !load_u64(address - 8, &inner_return_address) ||
		    !vm_registry_kind(chain->now.vm, inner_return_address))
			continue;
		frame->cframe = address;
		return true;
	}
	return false;
}

/* Native code that no VM frame has led to may have been called by another VM than
 * the expected one, further in: by the one whose C frame comes first. */
static void enter_innermost_vm(struct vm_chain *chain,
                               const struct cpu_registers *registers)
{
	const struct vm *innermost = NULL, *vm;
	uint64_t thread, cframe, nearest;
	size_t i;

	if (!read_current(chain->now.vm, &thread, &nearest))
		return;
	for (i = 0; i < VMS_MAX; i++) {
		vm = vm_registry_at(i);
		if (!vm || !read_current(vm, &thread, &cframe) ||
		    cframe < registers->sp || cframe >= nearest)
			continue;
		innermost = vm;
		nearest = cframe;
	}
	if (innermost)
		enter_vm(chain, innermost);
}

bool vm_chain_resync(struct vm_chain *chain, struct cpu_registers *registers,
                     bool by_unwinder, struct vm_frame *frame)
{
	if (chain->resync_count++ == RESYNC_COUNT_MAX)
		return false;
	*frame = (struct vm_frame){.origin = VM_FRAME_RESYNC,
	                           .ip = registers->ip};
	if (!chain->now.started)
		enter_innermost_vm(chain, registers);
	if (!find_cframe_outside(chain, registers, RESYNC_STACK_BYTES_MAX,
	                         frame) &&
	    !(by_unwinder && find_abandoned(chain, registers, frame)))
		return false;
	registers->saved[SAVED_RBX] = 0;
	registers->saved[SAVED_RBP] = 0;
	return finish_frame(chain, registers, frame) == VM_STEP_FRAME;
}
