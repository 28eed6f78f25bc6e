// SPDX-License-Identifier: MIT
/*
 * A profiled process, seen from outside: its library, its files for perf, its
 * namespaces. Reads /proc, changes nothing.
 */
#ifndef COMMANDS_PROCESS_H
#define COMMANDS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_PATH_BYTES 4096

struct process {
	int pid;
	int inner_pid;     /* as the process itself sees it */
	bool other_mounts; /* has another mount namespace than we */
	/* Paths are as the process sees them; "" for what it has not. */
	char library[PROCESS_PATH_BYTES]; /* the profiler, as loaded */
	char jitdump[PROCESS_PATH_BYTES]; /* whose marker is mapped */
	bool has_arena;                   /* perf is on, or was */
};

/* False, with a message, if there is no such process or it may not be read. */
bool process_read(struct process *process, int pid);

/* The path of a file of the process's for us. */
void process_path(const struct process *process, const char *path,
                  char outside[PROCESS_PATH_BYTES]);

#endif
