// SPDX-License-Identifier: MIT
/*
 * Attach: gets the agent into a running process, and talks with it.
 */
#ifndef COMMANDS_ATTACH_H
#define COMMANDS_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct attachment {
	pid_t pid;
	int pid_fd; /* pidfd_open(2): can be read when the process has ended */
	int socket; /* to the agent, see preload/attach_block.h */
};

/* Loads the agent, a file, into the process. False, with a message, if that is
 * refused; the process is as it was then. force: even if system calls of the
 * profiler may be forbidden to it. */
bool attach_open(struct attachment *attachment, pid_t pid, const char *agent,
                 bool force);
void attach_close(struct attachment *attachment);

/* Sends the settings and the descriptor of the dump. */
bool attach_send_settings(const struct attachment *attachment,
                          const char *settings, int dump);

/* The agent's next message: its letter, and its text. 0: it has ended, or does not
 * answer in time. */
char attach_receive(const struct attachment *attachment, int patience_ms,
                    char *text, size_t bytes);

#endif
