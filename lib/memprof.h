// SPDX-License-Identifier: MIT
/*
 * Memory profiles: each VM can have one at a time, with a file of its own; the
 * profiles of several VMs run side by side, and beside the session of sysprof.
 *
 * Called from ordinary code on the thread that runs the VM.
 */
#ifndef LIB_MEMPROF_H
#define LIB_MEMPROF_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

#include "error.h"

struct memprof_options {
	const char *path;
	uint64_t sample_bytes; /* 0: every event */
	bool stacks;
};

/* Puts a recording allocator into the VM of L. A start that is refused changes
 * nothing. 0, or -1 with the reason in *error. */
int memprof_start(lua_State *L, const struct memprof_options *options,
                  struct error *error);

/* Puts the VM's own allocator back and completes the dump. -1 with the reason
 * in *error; with PROFILE_ERRIO the profile has ended all the same. */
int memprof_stop(lua_State *L, struct error *error);

/* Could a profile be started here? 0, or -1 with the reason in *error. */
int memprof_check_available(lua_State *L, struct error *error);

#endif
