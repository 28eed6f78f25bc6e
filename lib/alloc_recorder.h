// SPDX-License-Identifier: MIT
/*
 * Allocation recorder: an allocator for one VM that hands every call to the
 * VM's own one, and what happened to a writer thread through a ring.
 *
 * It runs inside the VM's allocations, on the VM's thread: it must not call
 * Lua, nor allocate by the VM's allocator, nor wait.
 */
#ifndef LIB_ALLOC_RECORDER_H
#define LIB_ALLOC_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "error.h"
#include "ring_sig.h"
#include "stream/memprof_format.h"
#include "vm/vm.h"

struct alloc_recorder; /* alloc_recorder.c */

/* What stands in the VM in the place of its allocator. Outlives the recorder if
 * somebody else has put an allocator over ours meanwhile. */
struct alloc_hook {
	lua_Alloc inner; /* the allocator before, and its data */
	void *inner_data;
	struct alloc_recorder *recorder; /* NULL: calls are only passed on */
};

/* The lua_Alloc function; its data is a struct alloc_hook. */
void *alloc_hook_call(void *data, void *block, size_t old_bytes,
                      size_t new_bytes);

struct alloc_recorder_options {
	const struct vm *vm;   /* outlives the recorder */
	uint64_t sample_bytes; /* one event each so many bytes on average; 0:
	                        * every event */
	bool stacks;           /* of every event written */
};

struct alloc_recorder *
alloc_recorder_open(const struct alloc_recorder_options *options,
                    struct error *error);
/* No hook may point to it any more, and its writer must have ended. */
void alloc_recorder_close(struct alloc_recorder *recorder);

/* ---- for the writer thread --------------------------------------------------- */

struct ring *alloc_recorder_ring(struct alloc_recorder *recorder);

/* Sleeps until there is much to read, somebody calls _wake, or wait_ns have
 * passed. */
void alloc_recorder_wait(struct alloc_recorder *recorder, uint64_t wait_ns);
void alloc_recorder_wake(struct alloc_recorder *recorder);

/* Nothing more is recorded; from any thread. */
void alloc_recorder_disable(struct alloc_recorder *recorder);

struct alloc_counters {
	uint64_t events; /* handed to the writer */
	uint64_t lost[MEMPROF_LOST_COUNT];
};

void alloc_recorder_read_counters(const struct alloc_recorder *recorder,
                                  struct alloc_counters *counters);

#endif
