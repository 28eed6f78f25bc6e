// SPDX-License-Identifier: MIT
/*
 * The VMs of this process. Runs in the signal handler.
 *
 * An open hash table by the address of the global_State. A slot is claimed by
 * its key, filled and then published. Who still holds the entry of a VM that
 * was closed may find another VM in it: loads that cannot fault make that
 * harmless.
 */
#include "registry_sig.h"

#include <stdatomic.h>

#include "code.h"
#include "object_sig.h"

#define CLOSED UINT64_C(1) /* no address of a global_State */

struct registered_vm {
	_Atomic uint64_t key; /* global_State, CLOSED, 0: free */
	_Atomic bool ready;   /* vm is filled */
	struct vm vm;
};

static struct registered_vm registry[VMS_MAX];
static _Atomic uint32_t last_number;

/* The first VM of each copy of LuaJIT. */
static const struct vm *_Atomic kinds[VM_KINDS_MAX];

static uint64_t first_slot(uint64_t global_state)
{
	return (global_state >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static struct registered_vm *find_slot(uint64_t global_state)
{
	uint64_t slot = first_slot(global_state);

	for (int i = 0; i < VMS_MAX; i++) {
		struct registered_vm *entry = &registry[slot++ % VMS_MAX];
		uint64_t key = atomic_load(&entry->key);

		if (key == global_state)
			return entry;
		if (key == 0)
			return NULL;
	}
	return NULL;
}

const struct vm *vm_registry_find(uint64_t global_state)
{
	struct registered_vm *entry =
		global_state > CLOSED ? find_slot(global_state) : NULL;

	return entry && atomic_load(&entry->ready) ? &entry->vm : NULL;
}

const struct vm *vm_registry_at(size_t place)
{
	struct registered_vm *entry = &registry[place];

	return atomic_load(&entry->key) > CLOSED && atomic_load(&entry->ready)
	               ? &entry->vm
	               : NULL;
}

static struct registered_vm *claim_slot(uint64_t global_state)
{
	uint64_t slot = first_slot(global_state);

	for (int i = 0; i < VMS_MAX; i++) {
		struct registered_vm *entry = &registry[slot++ % VMS_MAX];
		uint64_t key = atomic_load(&entry->key);

		if (key <= CLOSED && atomic_compare_exchange_strong(
					     &entry->key, &key, global_state))
			return entry;
	}
	return NULL;
}

/* Two threads may do this at once, for two copies. */
static void add_kind(const struct vm *vm)
{
	for (int i = 0; i < VM_KINDS_MAX; i++) {
		const struct vm *known = NULL;

		if (atomic_compare_exchange_strong(&kinds[i], &known, vm) ||
		    known->code == vm->code)
			return;
	}
}

const struct vm *vm_registry_add(const struct vm *vm)
{
	const struct vm *known = vm_registry_find(vm->global_state);
	struct registered_vm *entry;

	if (known && known->code == vm->code)
		return known;
	entry = claim_slot(vm->global_state);
	if (!entry)
		return NULL;
	entry->vm = *vm;
	entry->vm.number = atomic_fetch_add(&last_number, 1) + 1;
	atomic_store(&entry->ready, true);
	add_kind(&entry->vm);
	return &entry->vm;
}

/* The main thread lies right before the global_State that it names. */
static bool is_global_state(const struct vm_layout *layout, uint64_t address)
{
	uint64_t thread = address - layout->gg_global;
	uint64_t global;

	return is_object(layout, thread, TYPE_THREAD) &&
	       load_reference(layout, thread + layout->object.thread.global,
	                      &global) &&
	       global == address;
}

const struct vm *vm_registry_see(const struct vm *kind, uint64_t global_state)
{
	const struct vm *known = vm_registry_find(global_state);
	struct vm seen;

	if (known)
		return known->code == kind->code ? known : NULL;
	if (!is_global_state(kind->layout, global_state))
		return NULL;
	seen = *kind;
	seen.global_state = global_state;
	return vm_registry_add(&seen);
}

static bool holds(const struct vm *vm, uint64_t address)
{
	return address >= vm->code->start && address < vm->code->end;
}

const struct vm *vm_registry_kind(const struct vm *kind, uint64_t address)
{
	if (holds(kind, address))
		return kind;
	for (int i = 0; i < VM_KINDS_MAX; i++) {
		const struct vm *other =
			atomic_load_explicit(&kinds[i], memory_order_acquire);

		if (!other)
			break;
		if (holds(other, address))
			return other;
	}
	return NULL;
}

void vm_registry_forget(uint64_t global_state)
{
	struct registered_vm *entry = find_slot(global_state);

	if (!entry)
		return;
	atomic_store(&entry->ready, false);
	atomic_store(&entry->key, CLOSED);
}
