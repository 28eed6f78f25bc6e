// SPDX-License-Identifier: MIT
/*
 * The rows of one object while they are made. Allocates; not for the signal
 * handler.
 */
#ifndef HOST_UNWIND_ROWS_H
#define HOST_UNWIND_ROWS_H

#include "unwind_table.h"

struct row_list; /* unwind_rows.c */

/* NULL: out of memory. */
struct row_list *row_list_open(void);

/* The rule that holds from here on. Later ones for the same place replace earlier
 * ones; those for a place before the last one are left out. */
void row_list_append(struct row_list *list, uint32_t ip,
                     const struct unwind_rule *rule);

bool row_list_out_of_memory(const struct row_list *list);

/* Ends the list, which is gone then. NULL if there are no rows, or *out_of_memory;
 * list may be NULL. */
struct unwind_rows *row_list_close(struct row_list *list, bool *out_of_memory);

void unwind_rows_free(struct unwind_rows *rows);

#endif
