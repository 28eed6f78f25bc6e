// SPDX-License-Identifier: MIT
/*
 * perf record beside processes that are profiled: with the probe that shows merged
 * stacks where it may be set, else with perf's own samples.
 */
#ifndef COMMANDS_PERF_RUN_H
#define COMMANDS_PERF_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "probe.h"

struct perf_run {
	pid_t pid;          /* of perf, 0: it does not run */
	int control, acks;  /* of perf record --control */
	int messages;       /* what perf has printed, a file */
	bool has_probe;     /* it records the probe */
	bool probe_is_ours; /* so that we have to remove it */
	bool has_foreign;   /* processes of another user */
	char probe[PROBE_NAME_BYTES];
};

/* Does the environment ask for one? perf inject --jit needs stacks then. */
bool perf_run_wants_jitdump(void);

/* Starts perf for processes, "12,13", and those that they will make: it samples when
 * this returns. library: as we see it. Says what is missing; the processes go on in
 * any case. */
void perf_run_start(struct perf_run *run, const char *processes,
                    const char *library);

/* Ends it and tells where the recording is. dump: of the same time. */
void perf_run_end(struct perf_run *run, const char *dump);

/* Ends it where nothing was profiled, and removes the recording. */
void perf_run_cancel(struct perf_run *run);

#endif
