// SPDX-License-Identifier: MIT
/* VM guard; see vm_guard.h. */
#include "vm_guard.h"

#include <errno.h>

#include <lauxlib.h>

#include "lmisclib.h"

/* The userdata. */
struct guard {
	const struct vm_guard_kind *kind;
	uint64_t serial; /* of the profile that it guards */
};

static int collect_guard(lua_State *L)
{
	const struct guard *guard = lua_touserdata(L, 1);

	if (guard)
		guard->kind->closing(L, guard->serial);
	return 0;
}

static void push_key(lua_State *L, const struct vm_guard_kind *kind)
{
	lua_pushlightuserdata(L, (void *)kind);
}

static void put_guard(lua_State *L, const struct vm_guard_kind *kind,
                      uint64_t serial)
{
	struct guard *guard;

	push_key(L, kind);
	guard = lua_newuserdata(L, sizeof(*guard));
	*guard = (struct guard){kind, serial};
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, collect_guard);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_rawset(L, LUA_REGISTRYINDEX);
}

/* Arguments and result of open_inside(). */
struct opening {
	struct vm *vm;
	struct fast_names *fast_names;    /* NULL: not read */
	const struct vm_guard_kind *kind; /* NULL: no guard */
	uint64_t serial;
	struct error *error;
	int result;
};

static int open_inside(lua_State *L)
{
	struct opening *opening = lua_touserdata(L, 1);

	luaL_checkstack(L, LUA_MINSTACK, "luajit-sysprof");
	opening->result = vm_open(opening->vm, L, opening->error);
	if (opening->result < 0)
		return 0;
	if (opening->fast_names)
		vm_read_fast_names(opening->vm, L, opening->fast_names);
	if (opening->kind)
		put_guard(L, opening->kind, opening->serial);
	return 0;
}

static int open_protected(struct opening *opening, lua_State *L)
{
	const char *message;

	opening->result = -1;
	if (lua_cpcall(L, open_inside, opening) == 0)
		return opening->result;
	message = lua_tostring(L, -1);
	error_set(opening->error, PROFILE_ERRMEM, ENOMEM,
	          "the VM could not be read: %s",
	          message ? message : "out of memory");
	lua_pop(L, 1);
	return -1;
}

int vm_guard_open(struct vm *vm, lua_State *L, struct fast_names *fast_names,
                  const struct vm_guard_kind *kind, uint64_t serial,
                  struct error *error)
{
	struct opening opening = {
		.vm = vm,
		.fast_names = fast_names,
		.kind = kind,
		.serial = serial,
		.error = error,
	};

	return open_protected(&opening, L);
}

int vm_guard_check(lua_State *L, struct error *error)
{
	struct vm vm;
	struct opening opening = {.vm = &vm, .error = error};

	return open_protected(&opening, L);
}

static int drop_inside(lua_State *L)
{
	const struct vm_guard_kind *kind = lua_touserdata(L, 1);

	push_key(L, kind);
	lua_rawget(L, LUA_REGISTRYINDEX);
	if (lua_isuserdata(L, -1)) {
		lua_pushnil(L);
		lua_setmetatable(L, -2);
	}
	push_key(L, kind);
	lua_pushnil(L);
	lua_rawset(L, LUA_REGISTRYINDEX);
	return 0;
}

void vm_guard_drop(lua_State *L, const struct vm_guard_kind *kind)
{
	if (lua_cpcall(L, drop_inside, (void *)kind) != 0)
		lua_pop(L, 1);
}
