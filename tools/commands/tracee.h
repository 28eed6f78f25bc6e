// SPDX-License-Identifier: MIT
/*
 * Tracee: one thread of another process, stopped for a moment by ptrace(2) and made
 * to execute system calls. Afterwards it goes on as if nothing had been: registers,
 * signal mask, and the system call that it was in. x86-64.
 *
 * To be used by one thread of the tracer only. While a tracee is diverted the tracer
 * must not end: the kernel would let it go on with registers that are not its own.
 * At other times the end of the tracer is the one way to let go of a thread that
 * has not stopped in time: it may still do so.
 */
#ifndef COMMANDS_TRACEE_H
#define COMMANDS_TRACEE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "blocked_time.h"

struct tracee {
	pid_t pid, thread_id;
	/* While it is stopped, as they were: */
	struct user_regs_struct registers;
	uint64_t signal_mask;
	struct blocked_time blocked;
	/* To be set by who knows: the code there reads no argument of a system
	 * call again, so the rest of a timeout can be put in place of all of it.
	 */
	bool is_in_c_library;
	bool is_stopped;
	bool is_diverted; /* its registers are not those */
	int stop_signal;  /* that came meanwhile, to be sent again; or 0 */
};

/* 0 or an errno; the thread goes on running. */
int tracee_seize(struct tracee *tracee, pid_t pid, pid_t thread_id);

/* 0; ETIMEDOUT: it waits for a device, or for a child of vfork(2); ESRCH: it has
 * ended; EBUSY: the process is stopped by a signal. */
int tracee_stop(struct tracee *tracee, int patience_ms);

/* Was it blocked in a system call, and in which? -1: it was running. */
long tracee_blocked_call(const struct tracee *tracee);

/* Is it in a sequence that must not be left half-way (rseq(2))? */
bool tracee_is_in_sequence(const struct tracee *tracee, uint64_t *sequence);

/* Executes the instruction `syscall` at an address; *result is the kernel's. 0 or
 * an errno. The arguments are the first six and, for clone(2), what r15 is to be.
 */
int tracee_call(struct tracee *tracee, uint64_t address, long number,
                const uint64_t arguments[6], uint64_t block, int64_t *result);

/* Goes on where it was, and is let go of if detach is set. 0 or an errno. */
int tracee_go_on(struct tracee *tracee, bool detach);

#endif
