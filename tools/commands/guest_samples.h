// SPDX-License-Identifier: MIT
/*
 * The samples of a dump, to be found by time and place: for a sample of perf,
 * the nearest one that was in the same place.
 */
#ifndef COMMANDS_GUEST_SAMPLES_H
#define COMMANDS_GUEST_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Where a thread is, as both profilers can tell. */
enum guest_place {
	PLACE_TRACE,  /* in the code of one trace */
	PLACE_VM,     /* in the VM's own code: its interpreter, its collector */
	PLACE_NATIVE, /* in other code */
};

struct guest_samples {
	const struct profile *profile;
	/* Of one place each, by time. */
	struct guest_sample *list; /* guest_samples.c */
	size_t count;
};

void guest_samples_open(struct guest_samples *samples,
                        const struct profile *profile);
void guest_samples_close(struct guest_samples *samples);

/* The trace (a frame of the profile) whose code holds the address at this time,
 * 0 if none that was sampled does. */
uint32_t guest_samples_trace(const struct guest_samples *samples,
                             uint64_t address, uint64_t time_ns);

/* The Lua function (a frame of the profile, without a line) in whose memory the
 * address is at this time, 0 if it is in none that was sampled. */
uint32_t guest_samples_function(const struct guest_samples *samples,
                                uint64_t address, uint64_t time_ns);

/* Is the thread one of those that were sampled? */
bool guest_samples_has_thread(const struct guest_samples *samples,
                              uint32_t thread_id);

/* What is known of a sample of perf. */
struct guest_question {
	uint32_t thread_id;
	enum guest_place place;
	uint32_t trace;    /* PLACE_TRACE: guest_samples_trace() */
	uint32_t function; /* PLACE_VM: guest_samples_function(), or 0 */
	uint64_t time_ns;
	uint64_t max_ns; /* farther ones are not looked at */
};

/* Node of the sample nearest in time that agrees in all of that. False if there
 * is none. *distance_ns is positive if that sample is the later one. */
bool guest_samples_find(const struct guest_samples *samples,
                        const struct guest_question *question, uint32_t *node,
                        int64_t *distance_ns);

#endif
