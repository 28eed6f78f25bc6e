// SPDX-License-Identifier: MIT
/*
 * Unwind tables: the unwind rules of every loaded object, decoded from
 * .eh_frame ahead of time into rows that the signal handler can search.
 *
 * Built and refreshed outside the handler from copies of the objects' memory,
 * never with the loader's lock: a thread that holds it may wait for ours. A
 * published set is never changed. A set that was replaced is freed when nobody
 * is between unwind_tables_enter() and unwind_tables_leave().
 */
#ifndef HOST_UNWIND_TABLE_H
#define HOST_UNWIND_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "../error.h"

/* Value of unwind_rule.saved[]: the register is not saved, still holds the
 * caller's value. */
#define UNWIND_SAVED_SAME INT16_MIN

enum unwind_rule_flag {
	UNWIND_FUNCTION = 1,  /* the rule starts a function */
	UNWIND_NO_RULE = 2,   /* a gap, or what a rule cannot express */
	UNWIND_OUTERMOST = 4, /* the function has no caller */
	UNWIND_SIGNAL = 8,    /* signal trampoline: a ucontext lies at sp */
	UNWIND_PLT = 16, /* CFA = sp + 8, 8 more behind the push of a stub */
	UNWIND_CFA_LOAD = 32, /* CFA is loaded from register + offset */
	UNWIND_SWITCH = 64,   /* the function may leave to another stack: an
	                       * unwinder, which overwrites its own frame */
};

/* How to unwind. Where the return address is depends on the CPU, see cpu_*.h. */
struct unwind_rule {
	int32_t cfa_offset;   /* CFA = cfa_register + cfa_offset */
	uint8_t cfa_register; /* enum saved_register, or SAVED_COUNT for sp */
	uint8_t flags;        /* enum unwind_rule_flag */
	int16_t saved[SAVED_COUNT]; /* saved at CFA + 8 * saved[] */
	uint16_t unused;            /* 0: rules are compared as bytes */
};
_Static_assert(sizeof(struct unwind_rule) == 8 + 2 * SAVED_COUNT,
               "a rule has no padding");

/* Rules of one object. A row is where a rule begins to hold. Many rows share
 * few rules, so they have its number. */
struct unwind_rows {
	size_t count;
	uint32_t *ips;          /* offset from the object's start, ascending */
	uint16_t *rule_numbers; /* index in rules */
	size_t rule_count;
	struct unwind_rule *rules;
	unsigned int holder_count; /* sets that it is part of */
};

struct unwind_object {
	uint64_t start, end;      /* executable addresses of the object */
	struct unwind_rows *rows; /* NULL: not decoded yet, or there are none */
	/* What tells whether it is still the same object. */
	uint64_t header;   /* address of its ELF header */
	uint64_t contents; /* hash of the page there */
	bool is_decoded;
};

struct unwind_tables {
	uint64_t generation; /* no two sets have the same */
	struct unwind_tables *retired_next;
	size_t object_count;
	struct unwind_object objects[]; /* ascending by start */
};

/* Publishes what is loaded now, if it is not known already. The object that
 * holds the needed address (0: none) is decoded, the others until budget_ns of
 * CPU time are used: the next call goes on there. Returns 0, 1 if objects were left
 * out, -1 with the reason in *error. */
int unwind_tables_refresh(uint64_t needed, uint64_t budget_ns,
                          struct error *error);

#define UNWIND_NO_BUDGET UINT64_MAX

/* What the sets hold, those that wait to be freed included. */
size_t unwind_tables_held_bytes(void);

/* In the child of a fork: whoever held the lock or read is in the parent. */
void unwind_tables_after_fork(void);

/* Written by unwind_table.c only. */
extern _Atomic(struct unwind_tables *) unwind_tables_published;
extern _Atomic unsigned int unwind_tables_reader_count;

/* From here on down: async-signal-safe. */

/* The published set, NULL before the first refresh. It and what it leads to
 * stay until unwind_tables_leave(). Pairs may nest. */
const struct unwind_tables *unwind_tables_enter(void);
void unwind_tables_leave(void);

/* Does a known object hold the address? */
bool unwind_tables_hold(const struct unwind_tables *tables, uint64_t address);

/* The rule in force at address, NULL if there is none. */
const struct unwind_rule *unwind_find_rule(const struct unwind_tables *tables,
                                           uint64_t address);

/* Function that holds the address, by the unwind information: also in
 * stripped objects. *start and *end are absolute. */
bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end);

/* Does a signal handler return to there? */
bool unwind_is_trampoline(uint64_t address);

/* Rules that were looked up before, by address: the same return addresses come
 * back in sample after sample. One a sampler, zeroed at first. */
#define UNWIND_CACHE_RULES 1024

struct unwind_cache {
	const struct unwind_tables *tables;
	uint64_t generation; /* of the set that the entries are from */
	struct unwind_cache_entry {
		uint64_t address;
		const struct unwind_rule *rule;
	} entries[UNWIND_CACHE_RULES];
};

/* Around each walk: enters the published set and forgets what is of another;
 * leaves it. */
void unwind_cache_begin(struct unwind_cache *cache);
void unwind_cache_end(struct unwind_cache *cache);

/* The rule in force at address, one that says how to go on. NULL if there is
 * none. */
const struct unwind_rule *unwind_cache_find(struct unwind_cache *cache,
                                            uint64_t address);

#endif
