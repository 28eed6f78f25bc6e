// SPDX-License-Identifier: MIT
/*
 * One LuaJIT VM, as seen from outside: where its state lies and how it is
 * laid out. Found and checked once by vm_open(), read-only afterwards.
 *
 * lib/vm knows nothing of profiling: it answers "what is this VM doing now?".
 */
#ifndef VM_VM_H
#define VM_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "../error.h"

struct vm_layout; /* layout.h: the offsets of one family of builds */
struct vm_code;   /* code.h: the VM's own machine code in its library */

struct vm {
	const struct vm_layout *layout;
	const struct vm_code *code;
	uint64_t global_state; /* address of global_State */
	/* False: with the JIT off, what is known fits several layouts, which
	 * differ in traces. Then no trace can be read. */
	bool traces_known;
	uint32_t number; /* 1, 2, 3, … in this process, as they were noticed */
	char description[160]; /* "LuaJIT 2.1.0-beta3 (layout …)" */
};

/*
 * Finds out how the VM of L is laid out: tries every known family and accepts
 * the one that agrees with what the public API says. Calls Lua API functions;
 * leaves the stack, the collector's settings and the hooks as they were.
 * Fails with PROFILE_ERRUSE and the build and the failed check in *error.
 */
int vm_open(struct vm *vm, lua_State *L, struct error *error);

/* Two structures may tell of one VM. */
static inline bool vm_is_same(const struct vm *a, const struct vm *b)
{
	return a->global_state == b->global_state;
}

/* Does L (any of its coroutines) belong to this VM? */
bool vm_owns(const struct vm *vm, const lua_State *L);

#define FAST_FUNCTIONS_MAX  256
#define FAST_NAME_BYTES_MAX 32

/* Names of the functions that the VM registers itself, by fast function
 * number; an empty name is not known. */
struct fast_names {
	uint32_t count; /* highest known number + 1 */
	char name[FAST_FUNCTIONS_MAX][FAST_NAME_BYTES_MAX];
};

/* Reads the names off the library tables that L can reach. */
void vm_read_fast_names(const struct vm *vm, lua_State *L,
                        struct fast_names *names);

#endif
