// SPDX-License-Identifier: MIT
/*
 * Sampler: everything that the signal handler needs for one thread, and the
 * handler itself.
 *
 * The thread that is sampled owns a sampler: only its handler writes to it.
 * Other threads read the ring and the counters. All memory is mapped by
 * sampler_open(); the handler allocates nothing.
 */
#ifndef LIB_SAMPLER_SIG_H
#define LIB_SAMPLER_SIG_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "error.h"
#include "lmisclib.h"
#include "ring_sig.h"
#include "vm/vm.h"
#include "../perfmap/arena_sig.h"

struct sampler; /* opaque: sampler_sig.c */

struct sampler_options {
	uint8_t mode;                       /* LUAM_SYSPROF_* */
	const struct vm *vm;                /* the VM that runs on the thread */
	const struct sample_clock *clock;   /* whose signals count */
	luam_Sysprof_backtracer backtracer; /* NULL: the built-in unwinder */
	struct address_arena *arena; /* addresses for perf; NULL: perf is off */
	/* With perf on, bases of the ranges in the arena that stand for library
	 * functions and markers: 16 bytes for each number, FAST_FUNCTIONS_MAX
	 * and MARKER_COUNT of them. */
	uint64_t fast_address;
	uint64_t marker_address;
};

/* What a sampler has counted so far. */
struct sampler_counters {
	uint64_t samples;               /* recorded, all states */
	uint64_t by_state[STATE_COUNT]; /* their sum is samples */
	uint64_t lost[LOST_COUNT];      /* not recorded, by reason */
	uint64_t markers[MARKER_COUNT]; /* recorded samples that hold the
	                                     * marker: not whole */
};

/* For the calling thread. The structures that options points to must outlive
 * the sampler. NULL with the reason in *error. */
struct sampler *sampler_open(const struct sampler_options *options,
                             struct error *error);

/* From now on signals of the calling thread are its samples; NULL ends it.
 * When it returns no handler of this thread is using the sampler. */
void sampler_attach(struct sampler *sampler);

/* Stops recording at once, from any thread (the stream has ended, …). */
void sampler_disable(struct sampler *sampler);

void sampler_close(struct sampler *sampler);

/* Ring to drain: consumer side for the writer thread. NULL in mode D. */
struct ring *sampler_ring(struct sampler *sampler);

void sampler_read_counters(const struct sampler *sampler,
                           struct sampler_counters *counters);

/* The SIGPROF handler. Install with SA_SIGINFO | SA_RESTART | SA_ONSTACK.
 * Async-signal-safe; leaves errno alone. */
void sampler_handle_signal(int signal, siginfo_t *info, void *context);

#endif
