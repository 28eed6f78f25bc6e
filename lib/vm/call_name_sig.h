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

#include <stdint.h>

#include "guest_sig.h"
#include "vm.h"

#define CALL_NAME_BYTES_MAX 128

/* The name by which the Lua function of the frame was called, not terminated;
 * returns its length, 0 where it cannot be told, or is longer. */
uint32_t call_name_read(const struct guest_frame *frame,
                        char name[CALL_NAME_BYTES_MAX]);

#endif
