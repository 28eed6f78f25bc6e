// SPDX-License-Identifier: MIT
/*
 * Call frame programs: the instructions of .eh_frame that say how a function is
 * unwound at each of its places. Not for the signal handler.
 */
#ifndef HOST_CFA_PROGRAM_H
#define HOST_CFA_PROGRAM_H

#include "dwarf_cursor.h"
#include "unwind_rows.h"

/* What all programs under one CIE share. */
struct cfa_units {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	bool is_signal; /* the functions are signal trampolines */
};

/* What holds at one point of a function. */
struct cfa_state {
	struct unwind_rule rule;
	bool return_address_moved; /* not where it is by the CPU's nature: no
	                            * rule can say that */
};

/* The state that the CIE's own instructions leave. */
void cfa_run_initial(const struct cfa_units *units, struct cursor instructions,
                     struct cfa_state *state);

struct cfa_function {
	const struct cfa_units *units;
	const struct cfa_state *initial;
	uint64_t start, end;
	uint64_t object_start; /* rows are relative to it */
};

/* Appends the rows of a function. */
void cfa_run_function(const struct cfa_function *function,
                      struct cursor instructions, struct row_list *list);

#endif
