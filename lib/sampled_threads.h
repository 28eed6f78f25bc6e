// SPDX-License-Identifier: MIT
/*
 * Sampled threads: those of the process that one session samples, each with a
 * sampler and a clock of its own.
 *
 * The thread that starts the session is the first, or stands aside. With all_threads set the
 * others of the process are found in /proc/self/task, and looked for again by
 * the writer's thread, which also lets go of those that have ended. Ordinary
 * code; one lock, held for no longer than it takes to walk the list.
 */
#ifndef LIB_SAMPLED_THREADS_H
#define LIB_SAMPLED_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "error.h"
#include "sampler_sig.h"

struct sampled_threads; /* sampled_threads.c */

/* Whether samples have the kernel's frames. */
enum kernel_frames {
	KERNEL_FRAMES_OFF,
	KERNEL_FRAMES_TRIED, /* where the kernel tells them */
	KERNEL_FRAMES_NEEDED,
};

struct sampled_threads_options {
	bool all_threads;
	bool spares_caller; /* with all_threads: not the calling one */
	enum sample_clock_kind first_clock;
	struct sample_event event; /* first_clock SAMPLE_CLOCK_EVENT */
	uint64_t interval_ns;      /* the same: events */
	/* Of the first thread: others that lack them are counted. Not with
	 * SAMPLE_CLOCK_WALL_TIMER. */
	enum kernel_frames kernel;
	/* Share of a thread's CPU time, in thousandths, that the handler may
	 * have; a longer interval keeps it. 0: any. */
	uint32_t overhead_permille;
	/* thread_id, clock and last_symbol_id are filled in here. */
	struct sampler_options sampler;
};

/* For the calling thread and, with all_threads, those that are there. Nothing
 * ticks yet. NULL with the reason in *error. */
struct sampled_threads *
sampled_threads_open(const struct sampled_threads_options *options,
                     struct error *error);

/* From here on signals are samples. */
int sampled_threads_start(struct sampled_threads *threads, struct error *error);

/* No thread gets a signal any more, though some may be pending. */
void sampled_threads_stop(struct sampled_threads *threads);

/* Stops all clocks for a while, or starts them again. */
void sampled_threads_pause(struct sampled_threads *threads, bool pause);

void sampled_threads_close(struct sampled_threads *threads);

/* In the child of a fork, where all threads but one are gone: gives descriptors
 * back and leaves the rest alone. */
void sampled_threads_abandon(struct sampled_threads *threads);

/* ---- for the writer's thread ---------------------------------------------- */

/* Looks for threads that are new, and closes those that have ended, some calls
 * later, so that their rings have been drained since. */
void sampled_threads_refresh(struct sampled_threads *threads);

/* A thread whose interval has changed since it was last told, 0: none. */
uint32_t sampled_threads_next_change(struct sampled_threads *threads,
                                     uint64_t *interval_ns);

/* Another dump begins: changes are told again. */
void sampled_threads_begin_dump(struct sampled_threads *threads);

/* The sampler with a number from 0 on, NULL: no more. They stay until the next
 * refresh. */
struct sampler *sampled_threads_at(struct sampled_threads *threads,
                                   size_t index);

/* ---- any thread ------------------------------------------------------------ */

/* The stream has failed: nothing is recorded any more. */
void sampled_threads_disable(struct sampled_threads *threads);

/* Sums, those of ended threads included. */
void sampled_threads_read_counters(struct sampled_threads *threads,
                                   struct sampler_counters *counters);

/* The clock of the first thread. */
const struct sample_clock *
sampled_threads_clock(const struct sampled_threads *threads);

struct sampled_threads_facts {
	uint32_t thread_count;   /* sampled now */
	uint32_t missed_count;   /* threads that could not be sampled */
	uint32_t blocking_count; /* threads that block the signal */
	bool is_replaced;        /* the handler of the signal, by the host */
	uint32_t kernel_count;   /* threads whose samples have kernel frames */
	uint64_t held_bytes;     /* of all samplers at most */
	uint64_t interval_ns;    /* the longest now in force */
	uint64_t handler_ns;     /* the longest average time of a sample */
};

void sampled_threads_read_facts(struct sampled_threads *threads,
                                struct sampled_threads_facts *facts);

#endif
