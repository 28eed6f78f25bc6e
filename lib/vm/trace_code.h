// SPDX-License-Identifier: MIT
/*
 * Compiled traces as machine code: where a trace lies, which line each part of
 * it comes from, how its stack frame looks. Not for the signal handler, but for
 * the VM's thread, between two instructions of which a trace cannot change.
 */
#ifndef VM_TRACE_CODE_H
#define VM_TRACE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm.h"

struct trace_code {
	uint32_t number;
	uint64_t address; /* of the machine code */
	uint32_t bytes;
	uint32_t frame_bytes; /* from the stack pointer to the caller's, but in
	                       * the first instruction */
	uint64_t prototype;   /* the trace starts in it, 0 unknown */
	uint32_t start_line;  /* 0 unknown */
};

/* Trace numbers are below this. */
uint32_t trace_number_end(const struct vm *vm);

/* False if there is no trace of this number. */
bool trace_read_code(const struct vm *vm, uint32_t number,
                     struct trace_code *code);

/* From this address on, the innermost function that runs, inlined ones too. */
struct trace_line {
	uint64_t address;
	uint64_t prototype; /* 0 unknown */
	uint32_t line;      /* 0 unknown */
};

/*
 * Lines of a trace, ascending, at most max of them, one for each of its
 * snapshots that changes anything. The first one is at the trace's start.
 * Returns how many there are.
 */
size_t trace_read_lines(const struct vm *vm, const struct trace_code *code,
                        struct trace_line *lines, size_t max);

/*
 * The area that new traces go into. Its lower end, used_start to used_end, has
 * what traces share: the exits that they leave through, and constants. False if
 * there is no area.
 */
struct trace_area {
	uint64_t start, end;
	uint64_t top; /* the next trace ends here or below */
	uint64_t used_start, used_end;
};

bool trace_read_area(const struct vm *vm, struct trace_area *area);

/*
 * Leaves the uppermost bytes that are free in the area unused for good: the one
 * thing that is ever written to a VM. To be called when LuaJIT says that it has
 * stored a trace, or is not making one. False, with nothing changed, where the
 * area has little left.
 */
bool trace_leave_gap(const struct vm *vm, uint32_t bytes);

/* A prototype's chunk name: *bytes at *text, which live as long as it does. None
 * and false for what is no prototype. */
bool prototype_read_chunk(const struct vm *vm, uint64_t prototype,
                          const char **text, uint32_t *bytes);

#endif
