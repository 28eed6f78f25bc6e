// SPDX-License-Identifier: MIT
/*
 * Call names: by which name a Lua function was called. Async-signal-safe.
 *
 * The instructions before the call say where the function came from: a global,
 * a field or method, an upvalue, a local variable. That alone would be a guess:
 * a function that was called may have left its frame to another by a tail call,
 * and `(a or b)()` has two names. So the name is looked up, and counts only if
 * the function is what it holds.
 */
#ifndef VM_CALL_NAME_SIG_H
#define VM_CALL_NAME_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "guest_sig.h"
#include "vm.h"

#define CALL_NAME_BYTES_MAX 128

struct call_name {
	uint32_t bytes; /* 0: it cannot be told, or is longer */
	bool is_local;  /* of a local variable, as a parameter: rather what the
	                 * caller does than what the function does */
	char text[CALL_NAME_BYTES_MAX]; /* not terminated */
};

/* The name by which the Lua function of the frame was called. */
void call_name_read(const struct guest_frame *frame, struct call_name *name);

#endif
