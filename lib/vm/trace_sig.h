// SPDX-License-Identifier: MIT
/*
 * Compiled traces: which one holds an address, and which Lua frames are
 * inlined in it. Async-signal-safe.
 */
#ifndef VM_TRACE_SIG_H
#define VM_TRACE_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "object_sig.h"
#include "vm.h"

/* Is the address in one of the areas that hold the VM's traces? */
bool trace_code_holds(const struct vm *vm, uint64_t address);

/* Number of the trace whose machine code holds the address, 0 if none does.
 * hint is looked at first. */
uint32_t trace_find(const struct vm *vm, uint64_t address, uint32_t hint);

/* Address of a trace's GCtrace, 0 if there is none of that number. */
uint64_t trace_object(const struct vm *vm, uint32_t number);

/* Base of the frame that the running trace counts from, 0 if none runs. */
uint64_t trace_base(const struct vm *vm);

struct trace_start {
	uint64_t prototype; /* the trace starts in it */
	uint32_t line;      /* of the instruction it starts at, 0 unknown */
	uint64_t pc;        /* of that instruction */
};

bool trace_read_start(const struct vm *vm, uint64_t trace,
                      struct trace_start *start);

/* PC of a prototype's return instruction: behind it. 0 if several of them are
 * on different lines, or the function is too long to look. */
uint64_t trace_find_return(const struct vm *vm, uint64_t prototype);

struct trace_snapshot {
	uint64_t entries; /* address of its part of the map */
	uint8_t entry_count;
	uint8_t slot_count;   /* of the Lua stack that it describes */
	uint16_t code_offset; /* 0 where the build does not store it */
};

bool trace_read_snapshot(const struct vm *vm, uint64_t trace, uint32_t number,
                         struct trace_snapshot *snapshot);

/* 0 if it cannot be read. */
uint32_t trace_snapshot_count(const struct vm *vm, uint64_t trace);

/* Number of the snapshot in force at a machine code address. */
bool trace_snapshot_at(const struct vm *vm, uint64_t trace, uint64_t address,
                       uint32_t *snapshot);

#define TRACE_FRAMES_MAX 64

/* One Lua function that the trace has inlined. */
struct trace_frame {
	/* 0: not a constant of the trace, which then depends on the prototype
	 * only; trace_find_prototype() tells it from the pc. */
	uint64_t function;
	uint64_t pc;    /* behind the instruction that it executes */
	uint64_t link;  /* as it would be on the stack */
	uint32_t slots; /* from jit_base up to its base */
};

struct trace_frames {
	uint32_t count;
	struct trace_frame frames[TRACE_FRAMES_MAX]; /* innermost first */
	/* Function of the frame at jit_base after a tail call, which is not on
	 * the stack yet; 0: the one on the stack. */
	uint64_t base_function;
	uint64_t top_pc;  /* same for the innermost frame of all */
	uint64_t base_pc; /* same for the frame at jit_base, which the trace
	                   * started in or returned to; 0 unknown */
};

/* Frames above jit_base at a snapshot. False if the snapshot is broken. */
bool trace_read_frames(const struct vm *vm, uint64_t trace, uint32_t snapshot,
                       struct trace_frames *frames);

/* The code between a trace and the VM's exit handler, and the start of that,
 * carry the number of the exit on the stack: from the C frame's address. Number
 * of the exit, and of its snapshot; false where that cannot be told. */
bool trace_exit_at(const struct vm *vm, uint64_t trace, uint64_t address,
                   uint64_t cframe, uint32_t *snapshot);

/* While a trace is left its registers are on the stack, the one that mostly
 * holds jit_base among them. 0 if it cannot be read. */
uint64_t trace_exit_base(const struct vm *vm, uint64_t trace, uint64_t cframe);

/* Has the trace that runs at address come to its end and told the next trace
 * the higher frame base it goes on with? Then the inlined frames are real. */
bool trace_has_handed_over(const struct vm *vm, uint64_t trace,
                           uint64_t address);

/* The prototype that holds pc, among those that the trace depends on. */
bool trace_find_prototype(const struct vm *vm, uint64_t trace, uint64_t pc,
                          uint64_t *prototype);

#endif
