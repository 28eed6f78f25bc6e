// SPDX-License-Identifier: MIT
/*
 * The VM's frames on the native stack: where C code entered the VM, where the
 * VM called C, and how to unwind through its code and through traces, for which
 * there are no usable unwind tables. Async-signal-safe.
 */
#ifndef VM_VM_FRAME_SIG_H
#define VM_VM_FRAME_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "vm.h"
#include "../host/unwind_sig.h"

/* How the VM frame was found, which decides what its registers mean. */
enum vm_frame_origin {
	VM_FRAME_RUNNING, /* innermost: the interrupted code is the VM's */
	VM_FRAME_CALLING, /* the VM has called C */
	VM_FRAME_TRACE,   /* the code is that of a trace */
	VM_FRAME_EXIT,    /* VM code that has no frame of its own, as the trace
	                   * exit handler */
	VM_FRAME_RESYNC,  /* native frames in between could not be unwound */
};

struct vm_frame {
	const struct vm *vm; /* whose it is */
	enum vm_frame_origin origin;
	uint64_t cframe; /* address of the VM's C frame */
	uint64_t thread; /* lua_State that runs in it */
	uint64_t ip;     /* where its code is: exact, or inside the call */
	uint64_t rbx, rbp;
	/* Those of the interrupted code, which is the VM's: */
	uint64_t rdx;      /* RUNNING only */
	uint64_t rax, rcx; /* EXIT only */
	bool interrupted;
	uint32_t trace_number; /* TRACE only; 0: not known */
};

/* Registers that a call does not save: of the interrupted code only. */
struct scratch_registers {
	uint64_t rax, rcx, rdx;
};

/* VMs on one native stack, one inside the other; more are native frames. */
#define VMS_PER_STACK_MAX 16

/* Where the chain of one VM's C frames stands. After its first one: the C frame
 * that has to come next, 0 if it was the outermost, and the lua_State of the
 * last one. */
struct vm_chain_place {
	const struct vm *vm;
	bool started;
	uint64_t next_cframe;
	uint64_t last_thread;
};

/* What is known while walking outwards. */
struct vm_chain {
	struct vm_chain_place now; /* the VM that the walk is in, or was last */
	struct vm_chain_place others[VMS_PER_STACK_MAX];
	size_t other_count;
	struct unwind_cache *rules;
	int32_t vmstate; /* VM state word: a hint which trace runs */
	struct scratch_registers scratch;
	unsigned int resync_count;
};

enum vm_step {
	VM_STEP_NOT_OURS, /* ordinary native code: unwind by the tables */
	VM_STEP_PLAIN,    /* VM code without a Lua frame; one native frame up */
	VM_STEP_FRAME,    /* *frame is filled; registers are those outside */
	VM_STEP_LOST,     /* it is the VM's but cannot be placed */
};

/* vm: the VM to expect. Others are noticed by their C frames. */
void vm_chain_begin(struct vm_chain *chain, const struct vm *vm,
                    struct unwind_cache *rules,
                    const struct scratch_registers *scratch);

/* Steps out of VM or trace code. exact: ip is not a return address. rule is the
 * unwind rule there, NULL if there is none. Registers change only for PLAIN and
 * FRAME. */
enum vm_step vm_chain_step(struct vm_chain *chain,
                           struct cpu_registers *registers, bool exact,
                           const struct unwind_rule *rule,
                           struct vm_frame *frame);

/* Address of the next C frame that the VM itself knows of; UINT64_MAX if there is
 * none further out. */
uint64_t vm_chain_next_cframe(const struct vm_chain *chain);

/* When unwinding failed: goes on at the next VM frame that the VM itself
 * knows of. False if there is none further out. by_unwinder: an unwinder is on
 * its way to a frame, maybe to that of a coroutine that an error has ended. */
bool vm_chain_resync(struct vm_chain *chain, struct cpu_registers *registers,
                     bool by_unwinder, struct vm_frame *frame);

/* VM state word, as layout.h numbers the states; ~VMSTATE_C if it cannot be
 * read. */
int32_t vm_read_state(const struct vm *vm);

/* Is the address that of a lua_State of this VM? */
bool vm_owns_thread(const struct vm *vm, uint64_t thread);

#endif
