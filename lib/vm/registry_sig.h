// SPDX-License-Identifier: MIT
/*
 * The VMs of this process. A VM gets here when it is opened, or on sight: one
 * that runs in the code of a VM that was checked has the same layout, so that
 * a walk which meets it can read it without having asked its Lua API.
 *
 * Async-signal-safe and lock-free. Entries are never freed, but used again for
 * another VM when theirs is closed.
 */
#ifndef VM_REGISTRY_SIG_H
#define VM_REGISTRY_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include <stddef.h>

#include "vm.h"

/* More VMs at a time are not known, and their frames native. */
#define VMS_MAX 1024
/* Copies of LuaJIT in one process. */
#define VM_KINDS_MAX 8

/* The entry of a VM that vm_open() has checked; numbers it. NULL: no room. */
const struct vm *vm_registry_add(const struct vm *vm);

/* The VM whose global_State is at an address, NULL: it is not known. */
const struct vm *vm_registry_find(uint64_t global_state);

/* The same; one that is not known is added if all that can be checked from
 * outside agrees with the layout of kind. */
const struct vm *vm_registry_see(const struct vm *kind, uint64_t global_state);

/* A VM whose own machine code holds the address; NULL: the address is not in
 * the interpreter of any known copy of LuaJIT. kind is looked at first. */
const struct vm *vm_registry_kind(const struct vm *kind, uint64_t address);

/* The VM in one of the VMS_MAX places, NULL: that is empty. */
const struct vm *vm_registry_at(size_t place);

/* The VM is being closed; another one at its address is a new one. */
void vm_registry_forget(uint64_t global_state);

#endif
