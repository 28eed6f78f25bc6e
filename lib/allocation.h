// SPDX-License-Identifier: MIT
/*
 * What an allocation recorder hands to its writer thread, beside the symbols of
 * sample.h: records of its ring. Fields are native; nothing of this reaches a
 * file as it is.
 */
#ifndef LIB_ALLOCATION_H
#define LIB_ALLOCATION_H

#include "sample.h"

/* Frames of one stack; of a deeper one the leaf's side is kept. */
#define ALLOCATION_FRAMES_MAX 256

enum allocation_record_kind {
	RING_ALLOCATION = 16,
	RING_ALLOCATION_CONTEXT = 17,
	RING_ALLOCATION_STACK = 18,
};

/* RING_ALLOCATION: one event. */
struct allocation {
	struct ring_record record;
	uint64_t source; /* prototype, C function or trace number */
	uint32_t line;   /* MEMPROF_LUA: that runs */
	uint8_t event;   /* enum memprof_event */
	uint8_t kind;    /* enum memprof_source */
	uint8_t flags;   /* EVENT_FLAG_* */
	uint8_t unused;
	/* MEMPROF_ALLOC: new address and size; MEMPROF_FREE: old ones;
	 * MEMPROF_REALLOC: both, old ones first. */
	uint64_t blocks[];
};

/* RING_ALLOCATION_CONTEXT: of the events behind it, up to the next one. */
struct allocation_context {
	struct ring_record record;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t coroutine;
	uint64_t trace_number;
};

/* RING_ALLOCATION_STACK: of the next event. */
struct allocation_stack {
	struct ring_record record;
	uint64_t frame_count;
	struct frame frames[]; /* leaf first */
};

#endif
