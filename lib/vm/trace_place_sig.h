// SPDX-License-Identifier: MIT
/*
 * Where in a trace the VM is: which trace runs or is being left, and which of
 * the Lua functions that it has inlined run there. Async-signal-safe.
 */
#ifndef VM_TRACE_PLACE_SIG_H
#define VM_TRACE_PLACE_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_sig.h"
#include "vm_frame_sig.h"

/* vm_frame: TRACE or EXIT; vmstate: in it; frame: the one at jit_base, or at
 * lua_State.base once the trace is left. *trace: 0 if it is not known. No frames,
 * where it or its snapshot is not known. False if the snapshot is broken. */
bool trace_place_read(const struct vm *vm, const struct vm_frame *vm_frame,
                      int32_t vmstate, uint64_t frame, uint64_t *trace,
                      struct trace_frames *inlined);

#endif
