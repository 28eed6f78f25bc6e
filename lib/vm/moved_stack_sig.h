// SPDX-License-Identifier: MIT
/*
 * Lua stacks that are being moved. A stack grows by copying it to another place.
 * Until the VM has set everything right, pointers and stack do not fit together.
 * Async-signal-safe.
 */
#ifndef VM_MOVED_STACK_SIG_H
#define VM_MOVED_STACK_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"
#include "object_sig.h"

/* Where the stack of a coroutine was at its last sample. One a sampler; zeroed.
 */
#define MOVED_STACKS 64

struct moved_stacks {
	struct lua_stack seen[MOVED_STACKS];
};

/* What may point to either place: words that the interrupted code works with. */
struct live_words {
	uint64_t registers; /* address of the saved ones */
	uint32_t register_count;
	uint64_t stack_pointer;
};

/* The stack is in its new place, base points into the old one, which is free by
 * now. Corrects both pointers (other: jit_base, or 0) if that can be done. */
void moved_stack_follow(struct moved_stacks *moved,
                        const struct lua_stack *stack, uint64_t *base,
                        uint64_t *other);

/* The stack is in its old place, which is free by now, and whose outermost slots
 * the allocator has overwritten. Start of the new place, 0 if it is not found. */
uint64_t moved_stack_find_copy(const struct live_words *words,
                               const struct vm_layout *layout,
                               const struct lua_stack *stack);

#endif
