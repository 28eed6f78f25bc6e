// SPDX-License-Identifier: MIT
/*
 * perf record beside a command that is profiled: with the probe that shows merged
 * stacks where it may be set, else with perf's own samples.
 */
#ifndef COMMANDS_PERF_RUN_H
#define COMMANDS_PERF_RUN_H

#include <stdbool.h>
#include <sys/types.h>

struct perf_run {
	pid_t pid;          /* of perf, 0: it does not run */
	int control, acks;  /* of perf record --control */
	int messages;       /* what perf has printed, a file */
	bool has_probe;     /* it records the probe */
	bool probe_is_ours; /* so that we have to remove it */
};

/* Starts perf for the process, and those that it will make, which must not run yet:
 * it samples when this returns. unwinds: records of stacks, for perf inject --jit.
 * Says what is missing; the command goes on in any case. */
void perf_run_start(struct perf_run *run, pid_t command, const char *library,
                    bool unwinds);

/* Ends it and tells where the recording is. dump: that of the command. */
void perf_run_end(struct perf_run *run, const char *dump);

#endif
