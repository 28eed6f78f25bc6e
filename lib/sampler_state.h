// SPDX-License-Identifier: MIT
/*
 * What a sampler consists of, for sampler.c (opening, closing, counters) and
 * sampler_sig.c (the handler) only.
 */
#ifndef LIB_SAMPLER_STATE_H
#define LIB_SAMPLER_STATE_H

#include "lua_symbols_sig.h"
#include "sample.h"
#include "sampler_sig.h"
#include "walk_sig.h"
#include "../perfmap/beacon_sig.h"

/* Of a stack with more frames, so many of the leaf's side are kept; the rest
 * of the room is for the root's side and one marker between. */
#define FRAMES_HEAD 384
#define FRAMES_TAIL (SAMPLE_FRAMES_MAX - FRAMES_HEAD - 1)

/* The frames of a sample while it is taken: the first FRAMES_HEAD in place,
 * behind them a ring of the last ones until finish_frames() puts it in order.
 * An address beside each frame stands for it in perf. */
struct frame_list {
	struct frame frames[SAMPLE_FRAMES_MAX];
	uint64_t addresses[SAMPLE_FRAMES_MAX];
	struct frame tail_frames[FRAMES_TAIL];
	uint64_t tail_addresses[FRAMES_TAIL];
	uint32_t count; /* frames offered */
	uint32_t gap;   /* frames that the walk had no room for, if its marker
	                 * for them is lost in turn */
	bool has_guest;
	struct guest_frame top; /* innermost guest frame, if has_guest */
};

struct sampler {
	struct sampler_options options;
	uint32_t thread_id;
	int slot; /* in sampler_slots, -1: not attached */
	_Atomic uint32_t own_last_symbol_id;
	/* Set from any thread, seen by the next handler. */
	_Atomic bool disabled;
	_Atomic bool in_handler;

	/* Written by the handler, read by anybody. */
	_Atomic uint64_t handler_ns; /* a moving average, 0: not known yet */
	_Atomic uint64_t by_state[STATE_COUNT];
	_Atomic uint64_t lost[LOST_COUNT];
	_Atomic uint64_t markers[MARKER_COUNT];

	/* The handler's own. */
	struct ring ring;
	struct lua_symbols *symbols; /* NULL in mode D */
	struct walk walk;
	struct frame_list list;
	struct kernel_stack kernel;  /* of this sample */
	uint64_t sample_ns;          /* CLOCK_MONOTONIC, when it began */
	uint64_t faults_caught_ns;   /* last seen to be so, 0: not so */
	uint32_t warm_up_count;      /* samples whose time did not count */
	uint32_t markers_seen;       /* by this sample: a bit for each marker */
	bool ring_full;              /* this sample lacked room for a symbol */
	struct beacon_chain *beacon; /* NULL: perf is off */
};

/*
 * Where the handler finds the samplers of its thread. A slot is never freed, so
 * the count of its users can be trusted even while the sampler goes.
 */
struct sampler_slot {
	_Atomic uint32_t thread_id; /* 0: free */
	_Atomic uint32_t user_count;
	struct sampler *_Atomic sampler;
};

extern struct sampler_slot sampler_slots[SAMPLERS_MAX];
extern _Atomic int sampler_slot_end; /* behind the last one that was used */

/* In the child of a fork: the thread has another id. */
void sampler_forget_thread(void);

/* Signals on threads without a sampler: the process timer does not care which
 * thread it interrupts. Since the last sampler_open(). */
extern _Atomic uint64_t sampler_foreign_count;

#endif
