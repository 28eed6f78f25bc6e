// SPDX-License-Identifier: MIT
/*
 * Traces: tells the names for perf which machine code the VM has, from the
 * start of a profile to its end. On the VM's thread, outside the signal
 * handler: nothing here runs unless a trace is made.
 *
 * LuaJIT calls one function a kind of event (jit.attach). A function that the
 * host has attached for the event "trace" is called as before, from ours, and
 * may be detached as ever. One that the host attaches later takes the place of
 * ours; what is missed then is found when the profile ends.
 */
#ifndef LIB_TRACES_H
#define LIB_TRACES_H

#include <stdbool.h>

#include <lua.h>

#include "error.h"
#include "perf_names.h"
#include "vm/vm.h"

struct traces; /* traces.c */

/* names must outlive it. NULL with the reason in *error. */
struct traces *traces_open(const struct vm *vm, struct perf_names *names,
                           struct error *error);

/* Tells of all traces there are and attaches to LuaJIT's events. Where a VM has
 * no jit.attach, only traces_unwatch() finds new ones. May throw a Lua error;
 * needs load_faults_catch(). */
void traces_watch(struct traces *traces, lua_State *L);

/* Detaches, puts the host's function back, and tells of what was missed. As
 * above. */
void traces_unwatch(struct traces *traces, lua_State *L);

/* Does any profile watch the VM of L? May throw a Lua error. */
bool traces_is_watched(lua_State *L);

/* The VM is being closed, and its code will be gone. As traces_close(). */
void traces_forget(struct traces *traces);

/* No event leads here any more, without a word to the VM. On its thread. */
void traces_close(struct traces *traces);

/* The same from another thread, while an event may be on its way: nothing is
 * freed. */
void traces_abandon(struct traces *traces);

#endif
