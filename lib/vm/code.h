// SPDX-License-Identifier: MIT
/*
 * The VM's own machine code: the assembler part of the library (or program)
 * that holds the VM. Found once per library, never freed.
 */
#ifndef VM_CODE_H
#define VM_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../error.h"

#define VM_PROLOGUES_MAX 16
#define VM_EPILOGUES_MAX 8
#define VM_RETURNS_MAX   8

/* Machine code from the first to behind the last instruction of a prologue
 * (without its push rbp, which not all have) and of an epilogue. */
#define VM_PROLOGUE_BYTES 9
#define VM_EPILOGUE_BYTES 11

struct vm_code {
	/* Interpreter, fast functions, entry and exit code: one function to
	 * the unwind tables, with one rule for all of it. */
	uint64_t start, end;
	/* The helper that calls C functions for the FFI lies right behind. */
	uint64_t ffi_call_end;
	/* Size of the VM's frame on the C stack, by its unwind rule. */
	uint16_t cframe_bytes;
	/* Where that one rule does not hold: code that builds or leaves the
	 * VM's C frame. Addresses of the first instruction. */
	uint64_t prologues[VM_PROLOGUES_MAX];
	size_t prologue_count;
	uint64_t epilogues[VM_EPILOGUES_MAX];
	size_t epilogue_count;
	/* Where a frame is built but not yet known to the VM, and where one is
	 * no longer: from the end of a prologue to the store, inclusive, and
	 * behind the store to the epilogue. */
	struct {
		uint64_t start, end;
	} unlinked[VM_PROLOGUES_MAX + VM_EPILOGUES_MAX];
	size_t unlinked_count;
	/* The trace exit handler, as long as its stack pointer is below a
	 * trace's registers; both 0 if it was not found. From exit_number_ready
	 * on the number of the exit is in rax, not on the stack. */
	uint64_t exit_start, exit_end;
	uint64_t exit_number_ready;
	/* Where results of a function are moved down over its own frame, and the
	 * base register still is that frame's. The code in the middle has the
	 * caller's. GC64 only: elsewhere a moved value cannot pass for a frame. */
	struct vm_return {
		uint64_t start, base_set, dispatched, end;
	} returns[VM_RETURNS_MAX];
	size_t return_count;
	char build_id[41]; /* of the object, hexadecimal; "" if it has none */
};

/* The VM code that holds the address, which is a return address of a C
 * function that the VM called. Not for the signal handler. */
const struct vm_code *vm_code_find(uint64_t address, struct error *error);

/* Name of the part of a known VM's code that holds the address, which starts at
 * *start; NULL if none does. VMs are stripped, and the nearest symbol would be
 * that of some other function. Not for the signal handler. */
const char *vm_code_name(uint64_t address, uint64_t *start);

/* After how many pushed bytes does the frame start? The distance from the stack
 * pointer to the CFA at ip if ip is inside a prologue or an epilogue, else 0.
 * Async-signal-safe. */
int vm_code_frame_edge(const struct vm_code *code, uint64_t ip);

/* Is the frame at the stack pointer one that the VM does not know? */
bool vm_code_is_unlinked(const struct vm_code *code, uint64_t ip);

/* Is it the exit handler, where the stack holds registers of a trace, which may
 * look like anything? */
bool vm_code_exits(const struct vm_code *code, uint64_t ip);

/* Is the instruction the one that stores the link of a called function, whose
 * frame is the base register's by now? GC64 only. */
bool vm_code_links(const struct vm_code *code, uint64_t ip);

/* May the frame at the base register be overwritten by its results? */
bool vm_code_moves_results(const struct vm_code *code, uint64_t ip);

/* Does the caller of a function that has returned go on, in its own frame? */
bool vm_code_goes_on(const struct vm_code *code, uint64_t ip);

#endif
