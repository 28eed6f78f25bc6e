// SPDX-License-Identifier: MIT
/*
 * Implant: the region of memory that is made in a process, and the thread that loads
 * the agent from it. x86-64.
 */
#ifndef COMMANDS_IMPLANT_H
#define COMMANDS_IMPLANT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach_block.h"
#include "target.h"
#include "tracee.h"

struct implant {
	struct target target;
	struct tracee tracee;
	pid_t thread_id;        /* as the process sees it */
	bool is_single;         /* the only thread */
	uint64_t system_call;   /* an instruction `syscall` */
	uint64_t signal_return; /* what signal handlers return to, 0: none */
	uint64_t region;
	uint64_t block; /* in it */
	struct attach_block contents;
};

/* Finds what is needed in the target, which is open; false with a message. */
bool implant_look(struct implant *implant);

/* Puts it into the process, where it loads the agent, a file. 0 or an errno;
 * EDEADLK: no good moment was found; ENOTSUP: an unknown C library. The implant must
 * be in memory that is shared with children. */
int implant_start(struct implant *implant, const char *agent);

/* The agent is ready, or says why not, or what is before it does: ATTACH_*, and the
 * contents of the block. */
int32_t implant_wait(struct implant *implant);

/* The agent unmaps the region and ends. */
void implant_abandon(const struct implant *implant);

/* Unmaps the region where there is no agent to do it. */
void implant_take_back(struct implant *implant);

#endif
