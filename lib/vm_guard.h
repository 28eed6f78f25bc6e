// SPDX-License-Identifier: MIT
/*
 * VM guard: opens the VM that a profile is of, and tells when lua_close() ends it.
 * The registry of the VM holds a userdata for each kind of profile, which
 * lua_close() collects.
 *
 * Called from ordinary code on the thread that runs the VM. Lua errors, as where
 * memory ends, do not get out of here.
 */
#ifndef LIB_VM_GUARD_H
#define LIB_VM_GUARD_H

#include <stdint.h>

#include <lua.h>

#include "error.h"
#include "vm/vm.h"

/* A VM has one guard of each kind at most. The address of the kind is its key in
 * the registry, so kinds are static. */
struct vm_guard_kind {
	/* The VM is being closed: from now on it must not be read. serial is
	 * that of the guard, whose profile may have ended. */
	void (*closing)(lua_State *L, uint64_t serial);
};

/* Opens the VM of L, reads the names of its library functions and puts a guard
 * into it, in place of an older one; kind may be NULL: no guard. 0, or -1 with
 * the reason in *error. */
int vm_guard_open(struct vm *vm, lua_State *L, struct fast_names *fast_names,
                  const struct vm_guard_kind *kind, uint64_t serial,
                  struct error *error);

/* Could the VM of L be opened? 0, or -1 with the reason in *error. */
int vm_guard_check(lua_State *L, struct error *error);

/* Takes the guard away, if there is one. Where memory ends it stays, so its kind
 * must expect serials of profiles that are gone. */
void vm_guard_drop(lua_State *L, const struct vm_guard_kind *kind);

#endif
