// SPDX-License-Identifier: MIT
/*
 * The guest stack: which Lua frames run in each of the VM's frames on the
 * native stack. Async-signal-safe.
 *
 * One walk per sample. The caller asks for one segment at a time, from the
 * innermost VM frame outwards, and so gets Lua and native frames in their true
 * order: a segment is what runs in one VM frame, no more.
 */
#ifndef VM_GUEST_SIG_H
#define VM_GUEST_SIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "moved_stack_sig.h"
#include "object_sig.h"
#include "vm.h"
#include "vm_frame_sig.h"

enum guest_kind {
	GUEST_LUA_FUNCTION,
	GUEST_C_FUNCTION,
	GUEST_FAST_FUNCTION,
	GUEST_UNKNOWN_FUNCTION, /* a frame is there, its function not known */
};

/* How a Lua function was called, for call_name_read(). */
struct guest_call {
	uint64_t pc;       /* behind the call instruction of a Lua function; 0:
	                    * called otherwise, or not known */
	uint64_t frame;    /* of the called function; 0: inlined in a trace */
	uint64_t function; /* inlined: the one that called, 0 not known */
};

struct guest_frame {
	const struct vm *vm; /* whose it is */
	enum guest_kind kind;
	uint64_t prototype;  /* GUEST_LUA_FUNCTION */
	uint64_t c_function; /* else: its C entry, see struct lua_function */
	uint64_t pc;         /* GUEST_LUA_FUNCTION: behind the bytecode that
	                      * it executes, 0 unknown */
	uint32_t line;       /* GUEST_LUA_FUNCTION: current, 0 unknown */
	uint8_t fast_number; /* GUEST_FAST_FUNCTION */
	bool compiled;       /* runs as part of a trace */
	struct guest_call call;
};

typedef void (*guest_visitor)(void *context, const struct guest_frame *frame);

enum guest_result {
	GUEST_WHOLE,
	GUEST_NO_BASE,   /* no candidate for the frame base holds water */
	GUEST_BAD_FRAME, /* the stack is broken below the frames shown */
};

/* Coroutines on one stack whose walk waits for a VM inside of theirs to end. */
#define WAITING_MAX 8

/* Where the walk of a coroutine stood; fields as in struct guest_walk. */
struct guest_place {
	uint64_t thread;
	struct lua_stack stack;
	uint64_t frame, pc;
	bool started, active;
};

struct guest_walk {
	const struct vm *vm; /* of the present segment */
	struct moved_stacks *moved;
	struct live_words words; /* of the interrupted code */
	/* The VM frames of this sample, innermost first. */
	const struct vm_frame *vm_frames;
	size_t vm_frame_count;
	/* Where the walk of the present coroutine stands. */
	uint64_t thread; /* 0: before the first segment */
	struct lua_stack stack;
	uint64_t frame; /* next one to show */
	uint64_t pc;    /* behind the instruction it executes, 0 unknown */
	bool started;   /* frame and pc are found */
	bool active;    /* there are frames left */
	bool compiled;  /* the next one is where a trace runs */
	/* The function of the next one, where the stack has an older; or 0. */
	uint64_t base_function;
	struct guest_call call; /* of the next one */
	struct guest_place waiting[WAITING_MAX];
	size_t waiting_count;
	/* For the caller, after the first segment: */
	uint32_t
		trace_number; /* trace that the innermost frames run in, or 0 */
};

void guest_walk_begin(struct guest_walk *walk, const struct vm *vm,
                      struct moved_stacks *moved,
                      const struct live_words *words,
                      const struct vm_frame *vm_frames, size_t count);

/* Shows the frames that run in vm_frames[index], innermost first. Ask for each
 * index once, ascending. */
enum guest_result guest_walk_segment(struct guest_walk *walk, size_t index,
                                     guest_visitor visit, void *context);

#endif
