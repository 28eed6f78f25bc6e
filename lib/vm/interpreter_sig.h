// SPDX-License-Identifier: MIT
/*
 * The frame that the interpreter executes, or that has called C code: the
 * innermost one of a coroutine that runs no trace. Async-signal-safe.
 */
#ifndef VM_INTERPRETER_SIG_H
#define VM_INTERPRETER_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "object_sig.h"
#include "vm_frame_sig.h"

/* What is known of the coroutine. */
struct interpreter_state {
	const struct vm *vm;
	const struct lua_stack *stack;
	const struct vm_frame *vm_frame; /* it runs in */
	bool innermost; /* the registers are those of its present run */
	uint64_t base;  /* stored: lua_State.base */
	uint64_t pc;    /* stored: that of the C frame */
};

/* False if no candidate for the frame base holds water. *pc: behind the
 * instruction that the frame executes, 0 unknown. */
bool interpreter_find_frame(const struct interpreter_state *state,
                            uint64_t *frame, uint64_t *pc);

#endif
