// SPDX-License-Identifier: MIT
/*
 * Rotated dumps: the files of a profile whose dumps are rotated, FILE.PID.TIME, and
 * the service that makes them for a process that is attached to. That may have fewer
 * rights than the recorder, other mounts or another root, so it only asks for them.
 */
#ifndef COMMANDS_ROTATED_DUMPS_H
#define COMMANDS_ROTATED_DUMPS_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As in the names: no dump that is made from now on has an earlier one. */
struct dump_time {
	char text[32];
};
struct dump_time dump_time_now(void);

struct rotated_dumps {
	size_t count;
	long long bytes;
	char last[PATH_MAX]; /* the newest one, "": there is none */
};

/* Those of a process since then; pid 0: of all processes. */
void rotated_dumps_find(struct rotated_dumps *dumps, const char *path,
                        pid_t pid, const struct dump_time *since);

/* Runs on a thread of its own, from start to end. */
struct dump_service {
	pthread_t thread;
	int socket;
	pid_t pid;
	const char *path; /* what all names begin with; outlives this */
};

/* The other end of the socket, for the agent (preload/attach_block.h), the caller's
 * to close; -1, with a message. */
int dump_service_start(struct dump_service *service, const char *path,
                       pid_t pid);
void dump_service_end(struct dump_service *service);

#endif
