// SPDX-License-Identifier: MIT
/* Perf share; see perf_share.h. */
#include "perf_share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lmisclib.h"
#include "stream/sysprof_format.h"
#include "traces.h"
#include "vm_guard.h"
#include "vm/registry_sig.h"

#define PERF_VARIABLE      "LUAJIT_SYSPROF_PERF"
#define DIRECTORY_VARIABLE "LUAJIT_SYSPROF_PERF_DIR"
#define UNWIND_VARIABLE    "LUAJIT_SYSPROF_PERF_UNWIND"

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
	pthread_mutex_t lock; /* guards all below, held for a moment */
	bool meets_vms;       /* a session of the process has perf */
	uint64_t session;     /* counts those */
	struct met_vm *first;
	uint64_t serial; /* of the last one */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A VM that is not the session's, whose traces are watched for it, or were. Freed
 * on the thread of that VM. */
struct met_vm {
	struct met_vm *next;
	uint64_t serial;
	struct vm vm;
	struct traces *traces;
};

/* ---- taking it ------------------------------------------------------------- */

/* NULL: it is not set, or empty. */
static const char *variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && value[0] ? value : NULL;
}

static int ask_environment(struct perf_share *share, struct error *error)
{
	const char *kind = variable(PERF_VARIABLE);
	const char *unwind = variable(UNWIND_VARIABLE);
	int found;

	if (!kind)
		return 0;
	share->kind = strcmp(kind, "1") == 0 ? PERF_NAMES_MAP
	                                     : perf_names_find_kind(kind);
	share->directory = variable(DIRECTORY_VARIABLE);
	if (share->kind != PERF_NAMES_JITDUMP || !unwind)
		return 0;
	found = perf_names_find_unwind(unwind);
	if (found < 0)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 UNWIND_VARIABLE " must be \"mapped\", "
		                                 "\"file\" or \"off\", got "
		                                 "\"%.100s\"",
		                 unwind);
	share->unwind = (enum perf_names_unwind)found;
	return 0;
}

int perf_share_decide(struct perf_share *share, bool takes_stacks,
                      struct error *error)
{
	if (!takes_stacks && share->kind)
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "perf needs mode \"L\" or \"C\": mode \"D\" "
		                 "takes no stacks");
	if (!takes_stacks || share->kind)
		return 0;
	return ask_environment(share, error);
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

static int open_names(struct perf_share *share, struct error *error)
{
	const struct perf_names_options options = {share->kind, share->unwind,
	                                           share->directory};

	kept.names = perf_names_open(&options, error);
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

int perf_share_open(struct perf_share *share, struct error *error)
{
	if (!share->kind)
		return 0;
	if (own(share, error) < 0 || open_arena(error) < 0 ||
	    open_names(share, error) < 0)
		return -1;
	return reserve_ranges(share, error);
}

/* Events of the other VMs may be on their way. */
static void part_from_vms(void)
{
	pthread_mutex_lock(&kept.lock);
	kept.meets_vms = false;
	for (struct met_vm *met = kept.first; met; met = met->next)
		traces_abandon(met->traces);
	pthread_mutex_unlock(&kept.lock);
}

void perf_share_release(struct perf_share *share)
{
	if (!share->is_owner)
		return;
	part_from_vms();
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

/* ---- other VMs -------------------------------------------------------------- */

/* Takes out the one of this serial, or of this VM. On the thread of that VM. */
static struct met_vm *take_met(uint64_t serial, uint64_t global_state)
{
	struct met_vm **link, *met;

	pthread_mutex_lock(&kept.lock);
	link = &kept.first;
	while ((met = *link) && met->serial != serial &&
	       met->vm.global_state != global_state)
		link = &met->next;
	if (met)
		*link = met->next;
	pthread_mutex_unlock(&kept.lock);
	return met;
}

static void end_with_vm(lua_State *L, uint64_t serial)
{
	struct met_vm *met = take_met(serial, 0);

	(void)L;
	if (!met)
		return;
	vm_registry_forget(met->vm.global_state);
	traces_forget(met->traces);
	free(met);
}

static const struct vm_guard_kind met_guard = {.closing = end_with_vm};

struct question {
	bool is_watched;
};

static int ask_inside(lua_State *L)
{
	struct question *question = lua_touserdata(L, 1);

	question->is_watched = traces_is_watched(L);
	return 0;
}

static bool is_watched(lua_State *L)
{
	struct question question = {false};

	if (lua_cpcall(L, ask_inside, &question) != 0)
		lua_pop(L, 1);
	return question.is_watched;
}

/* NULL: the VM cannot be read, or memory ends. */
static struct met_vm *open_met(lua_State *L, struct perf_names *names,
                               uint64_t serial)
{
	struct met_vm *met = calloc(1, sizeof(*met)), *before;

	if (!met)
		return NULL;
	met->serial = serial;
	/* One of an earlier session is collected without a word. */
	vm_guard_drop(L, &met_guard);
	if (vm_guard_open(&met->vm, L, NULL, &met_guard, serial, NULL) < 0) {
		free(met);
		return NULL;
	}
	before = take_met(0, met->vm.global_state);
	if (before)
		traces_close(before->traces);
	free(before);
	met->traces = traces_open(&met->vm, names, NULL);
	if (met->traces)
		return met;
	vm_guard_drop(L, &met_guard);
	free(met);
	return NULL;
}

void perf_share_meet(lua_State *L)
{
	struct perf_names *names;
	struct met_vm *met;
	uint64_t session, serial;

	pthread_mutex_lock(&kept.lock);
	names = kept.meets_vms ? kept.names : NULL;
	session = kept.session;
	serial = ++kept.serial;
	pthread_mutex_unlock(&kept.lock);
	if (!names || is_watched(L) || !(met = open_met(L, names, serial)))
		return;
	call_protected(L, watch_inside, met->traces);
	pthread_mutex_lock(&kept.lock);
	met->next = kept.first;
	kept.first = met;
	/* The session may have ended meanwhile. */
	if (!kept.meets_vms || kept.session != session)
		traces_abandon(met->traces);
	pthread_mutex_unlock(&kept.lock);
}

/* ---- the end ------------------------------------------------------------------ */

int perf_share_watch(struct perf_share *share, const struct vm *vm,
                     lua_State *L, bool process, struct error *error)
{
	if (!share->kind)
		return 0;
	share->traces = traces_open(vm, share->names, error);
	if (!share->traces)
		return -1;
	drop_orphan();
	call_protected(L, watch_inside, share->traces);
	pthread_mutex_lock(&kept.lock);
	kept.meets_vms = process;
	kept.session++;
	pthread_mutex_unlock(&kept.lock);
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
	if (kept.orphan && kept.orphan_serial == serial) {
		traces_forget(kept.orphan);
		kept.orphan = NULL;
	}
	if (share && share->traces)
		traces_forget(share->traces);
	if (share)
		share->traces = NULL;
}

/* ---- fork ------------------------------------------------------------------ */

void perf_share_before_fork(void)
{
	pthread_mutex_lock(&kept.lock);
	if (kept.names)
		perf_names_before_fork(kept.names);
}

void perf_share_in_parent(void)
{
	if (kept.names)
		perf_names_in_parent(kept.names);
	pthread_mutex_unlock(&kept.lock);
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
	pthread_mutex_init(&kept.lock, NULL);
	kept.meets_vms = false;
	atomic_store(&kept.is_owned, false);
}
