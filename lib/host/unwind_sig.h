// SPDX-License-Identifier: MIT
/*
 * One step of native unwinding by the tables. Async-signal-safe.
 */
#ifndef HOST_UNWIND_SIG_H
#define HOST_UNWIND_SIG_H

#include <stdbool.h>

#include "cpu.h"
#include "unwind_table.h"

enum unwind_result {
	UNWIND_CALLER,      /* registers are the caller's; ip is a return
	                     * address */
	UNWIND_INTERRUPTED, /* registers are those of code that a signal
	                     * interrupted; ip is exact */
	UNWIND_END,         /* there is no caller */
	UNWIND_NO_TABLE,    /* nothing known about this code */
	UNWIND_BAD_READ,    /* stack memory not readable */
	UNWIND_NO_PROGRESS, /* the rule leads nowhere: the stack is not what
	                     * it claims to be */
};

/* Turns the registers of a frame into those of its caller, by the rule in force
 * at its instruction; NULL if there is none. Leaves them alone unless the result
 * is UNWIND_CALLER or UNWIND_INTERRUPTED. */
enum unwind_result unwind_step(const struct unwind_rule *rule,
                               struct cpu_registers *registers);

/* What the kernel saved of code that a signal interrupted: of a frame that
 * unwind_step() leaves by UNWIND_INTERRUPTED, by its stack pointer. False if it is
 * not readable. */
bool unwind_signal_context(uint64_t sp, ucontext_t *context);

/* Is the address behind a call instruction? */
bool cpu_follows_call(uint64_t address);

/* Where a call leaves the return address, before the function has done anything:
 * at *address, with the caller's stack pointer *sp. */
bool cpu_find_fresh_return(const struct cpu_registers *registers,
                           uint64_t *address, uint64_t *sp);

/*
 * For code without rules: guesses at the caller, whose stack pointer is at most
 * sp_max. By the frame pointer, which such code may have set up, and which the
 * innermost function (exact) may not have set up yet; or by the first word on
 * the stack that is behind a call instruction of a known object. Both can leave
 * frames out or name one that has returned. False, and registers as they were,
 * if nothing looks right.
 */
bool unwind_guess_by_frame_pointer(const struct unwind_tables *tables,
                                   struct cpu_registers *registers, bool exact,
                                   uint64_t sp_max);
bool unwind_guess_by_scan(const struct unwind_tables *tables,
                          struct cpu_registers *registers, uint64_t sp_max);

#endif
