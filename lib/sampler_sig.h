// SPDX-License-Identifier: MIT
/*
 * Sampler: everything that the signal handler needs for one thread, and the
 * handler itself.
 *
 * Only the handler of the thread that is sampled writes to a sampler. Other
 * threads read the ring and the counters. All memory is mapped by
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
	uint32_t thread_id;                 /* 0: the calling thread */
	size_t ring_bytes;                  /* 0: SAMPLER_RING_BYTES */
	const struct vm *vm;                /* the VM to expect on the thread */
	const struct sample_clock *clock;   /* whose signals count */
	luam_Sysprof_backtracer backtracer; /* NULL: the built-in unwinder */
	struct address_arena *arena; /* addresses for perf; NULL: perf is off */
	/* With perf on, bases of the ranges in the arena that stand for library
	 * functions and markers: 16 bytes for each number, FAST_FUNCTIONS_MAX
	 * and MARKER_COUNT of them. */
	uint64_t fast_address;
	uint64_t marker_address;
	/* Lua symbol ids are handed out from here: samplers whose samples get
	 * into one dump share it. NULL: the sampler's own. */
	_Atomic uint32_t *last_symbol_id;
};

/* Half a second of 10 kHz with deep stacks; the writer wakes far earlier. */
#define SAMPLER_RING_BYTES (4u << 20)
/* Samplers in a process at a time. */
#define SAMPLERS_MAX 1024

/* What a sampler has counted so far. */
struct sampler_counters {
	uint64_t samples;               /* recorded, all states */
	uint64_t by_state[STATE_COUNT]; /* their sum is samples */
	uint64_t lost[LOST_COUNT];      /* not recorded, by reason */
	uint64_t markers[MARKER_COUNT]; /* recorded samples that hold the
	                                     * marker: not whole */
};

/* The structures that options points to must outlive the sampler. NULL with the
 * reason in *error. */
struct sampler *sampler_open(const struct sampler_options *options,
                             struct error *error);

/* From now on signals of its thread are its samples. -1: there are SAMPLERS_MAX
 * already. */
int sampler_attach(struct sampler *sampler);

/* When it returns no handler is using the sampler. Any thread. */
void sampler_detach(struct sampler *sampler);

/* In the child of a fork: no sampler gets a signal any more. */
void sampler_detach_all(void);

/* Stops recording at once, from any thread (the stream has ended, …). */
void sampler_disable(struct sampler *sampler);

/* Samples that a thread has missed for a reason which the handler does not see. One
 * thread at a time. */
void sampler_count_lost(struct sampler *sampler, enum lost_reason reason,
                        uint64_t number);

/* Any thread; detaches it first. */
void sampler_close(struct sampler *sampler);

/* What the sampler keeps mapped, as far as it was touched at most. */
size_t sampler_held_bytes(const struct sampler *sampler);

uint32_t sampler_thread_id(const struct sampler *sampler);

/* Signals that its handler has had, or of a clock with the kernel's frames their
 * overflows. */
uint64_t sampler_heard_count(const struct sampler *sampler);

/* How long a sample has taken, as an average of the last ones. */
uint64_t sampler_handler_ns(const struct sampler *sampler);

/* Ring to drain: consumer side for the writer thread. NULL in mode D. */
struct ring *sampler_ring(struct sampler *sampler);

/* LOST_FOREIGN_THREAD is that of the process so far. */
void sampler_read_counters(const struct sampler *sampler,
                           struct sampler_counters *counters);

/* Signals that met no sampler on their thread, in the process so far: the process
 * timer does not care which thread it interrupts. */
uint64_t sampler_foreign_signals(void);

/* The handler of the clock's signal. Install with SA_SIGINFO | SA_RESTART | SA_ONSTACK.
 * Async-signal-safe; leaves errno alone. */
void sampler_handle_signal(int signal, siginfo_t *info, void *context);

#endif
