// SPDX-License-Identifier: MIT
/* Perf share; see perf_share.h. */
#include "perf_share.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lmisclib.h"
#include "stream/sysprof_format.h"
#include "traces.h"

#define PERF_VARIABLE    "LUAJIT_SYSPROF_PERF"
#define PERF_RANGE_BYTES 16 /* of a library function, of a marker */

/* What outlives a session. Used by the one that owns the share, and around
 * forks. */
static struct {
	atomic_bool is_owned;
	bool arena_open;
	struct address_arena arena;
	struct perf_names *names; /* NULL: perf was never on */
	struct traces *orphan;    /* in a child: of the parent's session */
	uint64_t orphan_serial;
} kept;

/* ---- taking it ------------------------------------------------------------- */

static enum perf_names_kind kind_of_environment(void)
{
	const char *value = secure_getenv(PERF_VARIABLE);

	if (!value)
		return PERF_NAMES_OFF;
	return strcmp(value, "1") == 0 ? PERF_NAMES_MAP
	                               : perf_names_find_kind(value);
}

int perf_share_decide(struct perf_share *share, enum perf_names_kind asked,
                      bool takes_stacks, struct error *error)
{
	if (!takes_stacks && asked)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "perf needs mode \"L\" or \"C\": mode \"D\" "
		                 "takes no stacks");
	share->kind = asked;
	if (takes_stacks && !asked)
		share->kind = kind_of_environment();
	return 0;
}

static int own(struct perf_share *share, struct error *error)
{
	share->is_owner = !atomic_exchange(&kept.is_owned, true);
	if (share->is_owner)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "perf is told of another profile in this process; one "
	                 "at a time can have perf, or one with scope "
	                 "\"process\"");
}

static int open_arena(struct error *error)
{
	int code;

	if (kept.arena_open)
		return 0;
	code = address_arena_open(&kept.arena, ADDRESS_ARENA_BYTES);
	if (code < 0)
		return error_set(error, PROFILE_ERRMEM, -code,
		                 "no addresses for perf (%u MiB of executable "
		                 "memory): %s",
		                 ADDRESS_ARENA_BYTES >> 20, strerror(-code));
	kept.arena_open = true;
	return 0;
}

static int open_names(struct perf_share *share, const char *directory,
                      struct error *error)
{
	kept.names = perf_names_open(share->kind, directory, error);
	share->names = kept.names;
	return share->names ? 0 : -1;
}

static int reserve_ranges(struct perf_share *share, struct error *error)
{
	share->arena = &kept.arena;
	share->fast_address = address_arena_reserve(
		&kept.arena, FAST_FUNCTIONS_MAX * PERF_RANGE_BYTES);
	share->marker_address = address_arena_reserve(
		&kept.arena, MARKER_COUNT * PERF_RANGE_BYTES);
	if (share->fast_address != 0 && share->marker_address != 0)
		return 0;
	return error_set(error, PROFILE_ERRMEM, ENOMEM,
	                 "the addresses for perf are used up; start the "
	                 "program again");
}

int perf_share_open(struct perf_share *share, const char *directory,
                    struct error *error)
{
	if (!share->kind)
		return 0;
	if (own(share, error) < 0 || open_arena(error) < 0 ||
	    open_names(share, directory, error) < 0)
		return -1;
	return reserve_ranges(share, error);
}

void perf_share_release(struct perf_share *share)
{
	if (share->is_owner)
		atomic_store(&kept.is_owned, false);
	share->is_owner = false;
}

int perf_share_check(const struct perf_share *share, int result,
                     struct error *error)
{
	const char *path;

	if (!share->names || result < 0)
		return result;
	/* The dump is whole then, so this is told only where nothing worse is.
	 */
	path = perf_names_failed(share->names);
	if (!path)
		return result;
	return error_set(error, PROFILE_ERRIO, EIO,
	                 "%s: not all names for perf could be written", path);
}

/* ---- traces ---------------------------------------------------------------- */

static int watch_inside(lua_State *L)
{
	traces_watch(lua_touserdata(L, 1), L);
	return 0;
}

static int unwatch_inside(lua_State *L)
{
	traces_unwatch(lua_touserdata(L, 1), L);
	return 0;
}

/* Errors are those of a VM whose memory ends: then names are missing. */
static void call_protected(lua_State *L, lua_CFunction function,
                           struct traces *traces)
{
	if (lua_cpcall(L, function, traces) != 0)
		lua_pop(L, 1);
}

static void drop_orphan(void)
{
	if (kept.orphan)
		traces_close(kept.orphan);
	kept.orphan = NULL;
}

static void drop_traces(struct perf_share *share)
{
	if (share->traces)
		traces_close(share->traces);
	share->traces = NULL;
}

int perf_share_watch(struct perf_share *share, const struct vm *vm,
                     lua_State *L, struct error *error)
{
	if (!share->kind)
		return 0;
	share->traces = traces_open(vm, share->names, error);
	if (!share->traces)
		return -1;
	drop_orphan();
	call_protected(L, watch_inside, share->traces);
	return 0;
}

void perf_share_unwatch(struct perf_share *share, const struct vm *vm,
                        lua_State *L)
{
	if (!share->traces)
		return;
	if (vm_owns(vm, L)) {
		call_protected(L, unwatch_inside, share->traces);
		drop_traces(share);
		return;
	}
	/* Another VM ends the profile of the process, on its own thread. */
	traces_abandon(share->traces);
	share->traces = NULL;
}

void perf_share_forget_vm(struct perf_share *share, uint64_t serial)
{
	if (kept.orphan && kept.orphan_serial == serial)
		drop_orphan();
	if (share)
		drop_traces(share);
}

/* ---- fork ------------------------------------------------------------------ */

void perf_share_before_fork(void)
{
	if (kept.names)
		perf_names_before_fork(kept.names);
}

void perf_share_in_parent(void)
{
	if (kept.names)
		perf_names_in_parent(kept.names);
}

void perf_share_inherit(const struct perf_share *share, uint64_t serial)
{
	if (!share->is_owner)
		return;
	kept.orphan = share->traces;
	kept.orphan_serial = serial;
}

void perf_share_in_child(void)
{
	if (kept.names)
		perf_names_in_child(kept.names);
	atomic_store(&kept.is_owned, false);
}
