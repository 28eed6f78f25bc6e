// SPDX-License-Identifier: MIT
/*
 * Perf share: what a session tells perf of. There is one /tmp/perf-<pid>.map in
 * a process, so one session at a time has it; names and addresses stay when the
 * session ends, since perf reads them when the report runs.
 *
 * On the thread that starts or stops the session, which is that of the VM unless
 * said otherwise; never in the signal handler.
 */
#ifndef LIB_PERF_SHARE_H
#define LIB_PERF_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "error.h"
#include "perf_names.h"
#include "vm/vm.h"
#include "../perfmap/arena_sig.h"

/* Of one session; zeroed at first, but for what it asks for. */
struct perf_share {
	enum perf_names_kind kind;     /* PERF_NAMES_OFF: all below is unused */
	enum perf_names_unwind unwind; /* asked for, as is the next one */
	const char *directory;         /* of the jitdump, NULL: /tmp */
	bool is_owner;
	struct address_arena *arena;
	struct perf_names *names;
	uint64_t fast_address;   /* as in struct sampler_options */
	uint64_t marker_address; /* as in struct sampler_options */
	struct traces *traces;   /* watched; NULL: not yet, no longer */
};

/* Where no kind is asked for, the environment says all three. Refused where no
 * stacks are taken. All below do nothing where the kind is PERF_NAMES_OFF. */
int perf_share_decide(struct perf_share *share, bool takes_stacks,
                      struct error *error);

/* Takes it for this session. 0, or -1 with the reason in *error. */
int perf_share_open(struct perf_share *share, struct error *error);

/* Tells of traces from now on. vm must stay in place. process: the session is
 * of all VMs. As above. */
int perf_share_watch(struct perf_share *share, const struct vm *vm,
                     lua_State *L, bool process, struct error *error);

/*
 * Tells of the traces of the VM of L too, if a session of the process has perf.
 * A VM can be asked for its events on its own thread only: so whatever it calls
 * in here, when it is made or later, leads here. Does nothing for a VM that is
 * watched already.
 */
void perf_share_meet(lua_State *L);

/* Tells of no more of them; L may belong to another VM, on another thread. */
void perf_share_unwatch(struct perf_share *share, const struct vm *vm,
                        lua_State *L);

/* Leaves the share to the next session. */
void perf_share_release(struct perf_share *share);

/* result; -1 with the reason in *error where that was 0 and not all names could
 * be written. */
int perf_share_check(const struct perf_share *share, int result,
                     struct error *error);

/* The VM is being closed: the traces that are watched for the session of this
 * number, or were for its parent's before a fork. share may be NULL. */
void perf_share_forget_vm(struct perf_share *share, uint64_t serial);

/* Around fork(2). A child goes on to tell perf of the traces that it inherits,
 * by files of its own, until its own session watches, or the VM is closed. */
void perf_share_before_fork(void);
void perf_share_in_parent(void);
void perf_share_in_child(void);
/* In the child, of each session of the parent, and its serial number. */
void perf_share_inherit(const struct perf_share *share, uint64_t serial);

#endif
