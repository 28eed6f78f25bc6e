// SPDX-License-Identifier: MIT
/*
 * Opening a VM: finds its code and the one layout that describes it, from
 * inside a C function that the VM itself calls.
 */
#include "vm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "check.h"
#include "code.h"
#include "layout.h"
#include "object_sig.h"
#include "registry_sig.h"
#include "../host/unwind_table.h"
#include "../lmisclib.h"

/* Stack slots that the checks use at most. */
#define CHECK_STACK_SLOTS 40

/* How long a start may decode unwind tables; the writer thread does the rest. A
 * plain luajit is ready earlier. */
#define TABLES_BUDGET_NS UINT64_C(15000000)

/* The checks hold reads of wrong addresses: no hook may run Lua code between,
 * and two threads must not change the collector's settings at once. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

struct opening {
	struct vm *vm;
	struct error *error;
	int result;
};

static void describe(struct vm *vm, lua_State *L)
{
	const char *version;

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "jit");
	if (lua_istable(L, -1))
		lua_getfield(L, -1, "version");
	version = lua_tostring(L, -1);
	snprintf(vm->description, sizeof(vm->description), "%s (layout: %s)",
	         version ? version : "LuaJIT",
	         vm->layout ? vm->layout->name : "none");
}

static int refuse(struct opening *opening, lua_State *L, const char *closest,
                  const struct check_failure *failure)
{
	struct vm *vm = opening->vm;

	describe(vm, L);
	return error_set(
		opening->error, PROFILE_ERRUSE, EINVAL,
		"unknown build of LuaJIT: %s, build id %s; no known layout "
		"fits it (closest: %s, which fails at: %s)",
		vm->description,
		vm->code->build_id[0] ? vm->code->build_id : "missing", closest,
		failure->text);
}

/* Do both layouts say the same of traces? */
static bool traces_agree(const struct vm_layout *a, const struct vm_layout *b)
{
	return !memcmp(&a->trace, &b->trace, sizeof(a->trace)) &&
	       !memcmp(&a->snapshot, &b->snapshot, sizeof(a->snapshot)) &&
	       !memcmp(&a->jit, &b->jit, sizeof(a->jit));
}

/* Takes the first layout that fits. Where no trace could be compared the others
 * are tried, too: the VM may get traces later. */
static int choose_layout(struct opening *opening, lua_State *L,
                         lua_CFunction self)
{
	struct vm *vm = opening->vm;
	struct check_failure failure, closest_failure = {0};
	const char *closest = "none";
	int top = lua_gettop(L);
	bool traces_compared = false;
	size_t i;

	for (i = 0; i < vm_layout_count && !traces_compared; i++) {
		const struct vm_layout *layout = &vm_layouts[i];
		bool fits = layout_check(L, layout, vm->code, self,
		                         &vm->global_state, &traces_compared,
		                         &failure);

		lua_settop(L, top);
		if (fits && (traces_compared || !vm->layout)) {
			vm->layout = layout;
			vm->traces_known = true;
		} else if (fits) {
			vm->traces_known = vm->traces_known &&
			                   traces_agree(vm->layout, layout);
		} else if (!i || failure.passed_count >
		                         closest_failure.passed_count) {
			closest_failure = failure;
			closest = layout->name;
		}
	}
	if (!vm->layout)
		return refuse(opening, L, closest, &closest_failure);
	describe(vm, L);
	return 0;
}

/* Called by the VM, so that its return address is in the VM's code. */
static int open_inside(lua_State *L)
{
	uint64_t caller = (uint64_t)__builtin_return_address(0);
	struct opening *opening = lua_touserdata(L, 1);

	luaL_checkstack(L, CHECK_STACK_SLOTS, "layout check");
	if (unwind_tables_refresh(caller, TABLES_BUDGET_NS, opening->error) < 0)
		return 0;
	opening->vm->code = vm_code_find(caller, opening->error);
	if (opening->vm->code)
		opening->result = choose_layout(opening, L, open_inside);
	return 0;
}

static int number_vm(struct vm *vm, struct error *error)
{
	const struct vm *known = vm_registry_add(vm);

	if (!known)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no more than %d Lua VMs can be told apart",
		                 VMS_MAX);
	vm->number = known->number;
	return 0;
}

int vm_open(struct vm *vm, lua_State *L, struct error *error)
{
	struct opening opening = {vm, error, -1};

	memset(vm, 0, sizeof(*vm));
	if (load_faults_catch(error))
		return -1;
	pthread_mutex_lock(&open_lock);
	if (lua_cpcall(L, open_inside, &opening)) {
		opening.result = error_set(error, PROFILE_ERRUSE, EINVAL,
		                           "the check of the VM failed: %s",
		                           lua_tostring(L, -1));
		lua_pop(L, 1);
	}
	if (!opening.result)
		opening.result = number_vm(vm, error);
	pthread_mutex_unlock(&open_lock);
	load_faults_release();
	return opening.result;
}

bool vm_owns(const struct vm *vm, const lua_State *L)
{
	uint64_t global;

	return load_reference(vm->layout,
	                      (uint64_t)L + vm->layout->object.thread.global,
	                      &global) &&
	       global == vm->global_state;
}
