// SPDX-License-Identifier: MIT
/*
 * Unwind tables: the unwind rules of every loaded object, decoded from
 * .eh_frame ahead of time into rows that the signal handler can search.
 *
 * Built and refreshed outside the handler, under a lock. A published set is
 * never changed, and freed only by a later refresh: nobody may refresh while
 * a profile runs.
 */
#ifndef HOST_UNWIND_TABLE_H
#define HOST_UNWIND_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_x86_64.h"
#include "../error.h"

/* Value of unwind_row.saved[]: the register is not saved, still holds the
 * caller's value. */
#define UNWIND_SAVED_SAME INT8_MIN

enum unwind_row_flag {
	UNWIND_FUNCTION = 1,  /* the row starts a function */
	UNWIND_NO_RULE = 2,   /* a gap, or a rule that a row cannot express */
	UNWIND_OUTERMOST = 4, /* the function has no caller */
	UNWIND_SIGNAL = 8,    /* signal trampoline: a ucontext lies at sp */
	UNWIND_PLT = 16, /* CFA = sp + 8, 8 more behind the push of a stub */
	UNWIND_CFA_LOAD = 32, /* CFA is loaded from register + offset */
};

/* How to unwind from ip up to the next row's ip. The return address lies at
 * CFA - 8, as the CPU's call instruction leaves it. */
struct unwind_row {
	uint32_t ip;          /* offset from the object's start */
	int32_t cfa_offset;   /* CFA = cfa_register + cfa_offset */
	uint8_t cfa_register; /* enum saved_register, or SAVED_COUNT for sp */
	uint8_t flags;        /* enum unwind_row_flag */
	int8_t saved[SAVED_COUNT]; /* saved at CFA + 8 * saved[] */
};

struct unwind_object {
	uint64_t start, end;     /* executable addresses of the object */
	struct unwind_row *rows; /* ascending by ip */
	size_t row_count;
	/* What tells whether it is still the same object. */
	uint64_t load_address;
	const void *frame_header; /* its .eh_frame_hdr in memory */
	char name[128];           /* path as the loader has it, "" for the
	                           * program; its end if longer */
};

struct unwind_tables {
	size_t object_count;
	struct unwind_object objects[]; /* ascending by start */
};

/* Decodes what is not decoded yet and publishes the set. */
int unwind_tables_refresh(struct error *error);

/* Written by unwind_tables_refresh() only. */
extern _Atomic(struct unwind_tables *) unwind_tables_published;

/* The published set; NULL before the first refresh. Async-signal-safe, as
 * are the two look-ups. */
const struct unwind_tables *unwind_tables_current(void);

/* The row in force at address, NULL if there is none. *object may be NULL. */
const struct unwind_row *unwind_find_row(const struct unwind_tables *tables,
                                         uint64_t address,
                                         const struct unwind_object **object);

/* Rows that were looked up before, by address: the same return addresses come
 * back in sample after sample. One a sampler, zeroed at first. */
#define UNWIND_CACHE_ROWS 1024

struct unwind_cache {
	const struct unwind_tables *tables; /* what the entries are from */
	struct unwind_cache_entry {
		uint64_t address;
		const struct unwind_row *row;
	} entries[UNWIND_CACHE_ROWS];
};

/* Forgets the rows of another set. To be called before each walk. */
void unwind_cache_begin(struct unwind_cache *cache,
                        const struct unwind_tables *tables);

/* The rule in force at address: a row that says how to go on. NULL if there is
 * none. */
const struct unwind_row *unwind_cache_find(struct unwind_cache *cache,
                                           uint64_t address);

/* Function that holds the address, by the unwind information: also in
 * stripped objects. *start and *end are absolute. */
bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end);

#endif
