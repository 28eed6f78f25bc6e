// SPDX-License-Identifier: MIT
/* luajit-sysprof record -p: profiles a process that runs already. */
#ifndef COMMANDS_RECORD_PROCESS_H
#define COMMANDS_RECORD_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct process_recording {
	pid_t pid;
	const char *path;            /* of the dump, absolute */
	const char *agent, *library; /* files, absolute */
	double seconds;              /* 0: until a signal comes */
	bool force;
};

/* The options of the profile are in the environment. Returns an exit status. */
int record_process(const struct process_recording *recording);

#endif
