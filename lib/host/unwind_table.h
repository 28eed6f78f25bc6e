// SPDX-License-Identifier: MIT
/*
 * Unwind tables: the unwind rules of every loaded object, decoded from
 * .eh_frame ahead of time into rows that the signal handler can search.
 *
 * Built and refreshed outside the handler, under a lock. A published set is
 * never changed or freed while a profile runs, so the handler may use the one
 * that it loaded at its start.
 */
#ifndef HOST_UNWIND_TABLE_H
#define HOST_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../error.h"

struct unwind_tables; /* unwind_table.c */

/* Loads what is not loaded yet. Cheap when nothing changed. */
int unwind_tables_refresh(struct error *error);

/* Function that holds the address, by the unwind information: also in
 * stripped objects. *start and *end are absolute. Async-signal-safe. */
bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end);

#endif
