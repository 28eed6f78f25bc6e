// SPDX-License-Identifier: MIT
/* luajit-sysprof record -p: profiles processes that run already. */
#ifndef COMMANDS_RECORD_PROCESS_H
#define COMMANDS_RECORD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process_recording {
	const pid_t *pids;
	size_t pid_count;
	const char
		*path; /* of the dump, absolute; of several, and of a rotation,
	                   * what their names begin with */
	const char *agent, *library; /* files, absolute */
	double seconds;              /* 0: until a signal comes */
	bool force;
	bool rotates;  /* as the environment says */
	bool has_perf; /* perf record runs, too */
};

/* The options of the profile are in the environment. Returns an exit status. */
int record_processes(const struct process_recording *recording);

#endif
