// SPDX-License-Identifier: MIT
/*
 * Walk: the merged stack of the interrupted thread, Lua and native frames in
 * their true order. Async-signal-safe.
 */
#ifndef LIB_WALK_SIG_H
#define LIB_WALK_SIG_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "host/unwind_table.h"
#include "stream/sysprof_format.h"
#include "vm/guest_sig.h"
#include "vm/vm.h"

/* Native frames that are kept of a deep stack, VM frames included: the innermost
 * and the outermost ones. */
#define WALK_HEAD 768
#define WALK_TAIL 256
/* Behind so many frames a walk ends: the way back takes 1 ms then. */
#define WALK_NATIVE_MAX 16384
/* Most entries into the VM that one stack holds: callbacks in callbacks. With
 * string.gsub() in each other 8 MiB of stack hold some 1,000. */
#define WALK_VM_FRAMES_MAX 1024

/* One step of the native walk. */
struct native_frame {
	uint64_t address; /* NATIVE_CODE: of the instruction */
	uint8_t kind;     /* enum native_kind */
	uint8_t marker;   /* NATIVE_MARKER: enum frame_marker */
	uint16_t index;   /* NATIVE_VM: of its VM frame */
};

enum native_kind {
	NATIVE_CODE,
	NATIVE_VM,
	NATIVE_MARKER,
};

/* Scratch of a walk. One a sampler, zeroed at first; too big for the stack of
 * a signal handler. */
struct walk {
	/* These two survive from sample to sample. */
	struct moved_stacks moved;
	struct unwind_cache rules;
	struct native_frame head[WALK_HEAD];
	struct native_frame tail[WALK_TAIL]; /* a ring */
	size_t native_count; /* of all frames, those in between included */
	bool is_whole;       /* no native frame is missing */
	struct vm_frame vm_frames[WALK_VM_FRAMES_MAX];
	size_t vm_frame_count;
	struct guest_walk guest;
	size_t shown_vm_frames;
	/* A native frame that is not shown yet: it may be the body of a C
	 * function that the guest stack names, too. */
	uint64_t pending_address;
	bool has_pending;
	bool segment_starts; /* the next guest frame is its segment's first */
	const struct walk_visitor *visitor;
	void *context;
};

/* What is told of a stack, leaf first. */
struct walk_visitor {
	void (*native)(void *context, uint64_t address);
	void (*guest)(void *context, const struct guest_frame *frame);
	void (*marker)(void *context, enum frame_marker marker,
	               uint32_t frame_count);
};

/* After a walk: */
struct walk_facts {
	const struct vm *vm; /* innermost on the stack, NULL: there is none */
	int32_t vmstate; /* its state word; that of the VM expected where the
	                      * thread may be in it; else ~VMSTATE_C */
	uint64_t thread; /* innermost lua_State, 0: none */
	uint32_t trace_number; /* trace that holds the innermost Lua frame, 0:
	                        * none */
};

/* Walks from the interrupted context. vm is the VM to expect; others of the same
 * library, or known to lib/vm/registry_sig.h, are walked as well. SIGSEGV must not
 * be blocked. */
void walk_stack(struct walk *walk, const struct vm *vm,
                const ucontext_t *context, const struct walk_visitor *visitor,
                void *visitor_context, struct walk_facts *facts);

#endif
