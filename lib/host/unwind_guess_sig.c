// SPDX-License-Identifier: MIT
/*
 * Guesses at the caller of code that nobody describes. Runs in the signal
 * handler.
 */
#include "unwind_sig.h"

#include "../load_sig.h"

/* Frames above this are not believed. */
#define GUESSED_FRAME_BYTES_MAX (UINT64_C(1) << 20)
#define SCANNED_WORDS_MAX       2048

static bool is_return_address(const struct unwind_tables *tables,
                              uint64_t address)
{
	return unwind_tables_hold(tables, address - 1) &&
	       cpu_follows_call(address);
}

bool unwind_guess_by_frame_pointer(const struct unwind_tables *tables,
                                   struct cpu_registers *registers, bool exact,
                                   uint64_t sp_max)
{
	uint64_t frame = registers->saved[CPU_FRAME_POINTER];
	uint64_t outer, return_address, sp;

	if (exact && cpu_find_fresh_return(registers, &return_address, &sp) &&
	    sp <= sp_max && is_return_address(tables, return_address)) {
		registers->ip = return_address;
		registers->sp = sp;
		return true;
	}
	if (frame % 8 || frame < registers->sp ||
	    frame - registers->sp >= GUESSED_FRAME_BYTES_MAX ||
	    frame + 16 > sp_max || !load_u64(frame, &outer) ||
	    !load_u64(frame + 8, &return_address) ||
	    !is_return_address(tables, return_address))
		return false;
	registers->ip = return_address;
	registers->sp = frame + 16;
	registers->saved[CPU_FRAME_POINTER] = outer;
	return true;
}

bool unwind_guess_by_scan(const struct unwind_tables *tables,
                          struct cpu_registers *registers, uint64_t sp_max)
{
	uint64_t at = (registers->sp + 7) & ~UINT64_C(7);
	uint64_t word;
	int i;

	for (i = 0; i < SCANNED_WORDS_MAX && at + 8 <= sp_max; i++, at += 8) {
		if (!load_u64(at, &word))
			return false;
		if (!is_return_address(tables, word))
			continue;
		registers->ip = word;
		registers->sp = at + 8;
		return true;
	}
	return false;
}
