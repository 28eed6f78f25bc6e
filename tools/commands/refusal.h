// SPDX-License-Identifier: MIT
/*
 * Refusals: which processes cannot be attached to, told with reason and remedy.
 * Reads /proc, changes nothing.
 */
#ifndef COMMANDS_REFUSAL_H
#define COMMANDS_REFUSAL_H

#include <stdbool.h>
#include <sys/types.h>

/* A number from the status of a process or thread; -1: it is not there. The last
 * one of the line. */
long read_thread_status(pid_t pid, pid_t thread_id, const char *name);

/* Is the process in a state to be attached to? force: even with a seccomp filter.
 * False with a message, as are all below. */
bool check_state(pid_t pid, bool force);

/* Does the process see this file, which it opens by the same path, perhaps in a
 * file system of its own? */
bool check_file(pid_t pid, const char *path);

/* Tells what an errno of attaching means. Always false. */
bool refuse_errno(pid_t pid, int code);

#endif
