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

#endif
