// SPDX-License-Identifier: MIT
/*
 * Who runs in the VM now: the innermost Lua or C function and its line, found
 * from inside a call that the VM makes, such as one of its allocator. Much
 * cheaper than a walk: it does not look at the native stack.
 *
 * On the VM's thread, in ordinary code. Never calls Lua and never allocates.
 * Reads by loads that cannot fault: load_faults_catch() must be in force.
 */
#ifndef VM_RUNNING_H
#define VM_RUNNING_H

#include <stdint.h>

#include "guest_sig.h"
#include "vm.h"

enum running_kind {
	RUNNING_INTERNAL, /* the VM itself: collector, compiler, or unknown */
	RUNNING_LUA,
	RUNNING_C,     /* a C function, or a library function not called by a
	                * Lua function */
	RUNNING_TRACE, /* a trace, of which no more is known */
};

struct running {
	enum running_kind kind;
	uint32_t line; /* RUNNING_LUA: that runs; never 0 */
	/* RUNNING_LUA: prototype; RUNNING_C: C entry. A library function that a
	 * Lua function has called counts as that one. */
	uint64_t value;
	uint64_t coroutine;     /* its lua_State, 0: none */
	uint32_t trace_number;  /* 0: not in a trace */
	struct guest_call call; /* RUNNING_LUA: how it was called */
	/* The caller's own marks of the function (RUNNING_LUA) and of the trace
	 * (where there is one); 0 when what is at this address is new. */
	uint32_t *mark;
	uint32_t *trace_mark;
};

struct running_cache; /* running.c: what was found out before. Zeroed at first */

size_t running_cache_bytes(void);

void running_find(struct running_cache *cache, const struct vm *vm,
                  struct running *running);

/* To be told of all memory that the VM gives back: what is known of a prototype
 * or trace at this address holds no more. */
void running_forget(struct running_cache *cache, uint64_t address);

#endif
