// SPDX-License-Identifier: MIT
/* One thread under ptrace(2); see tracee.h. */
#include "tracee.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From <linux/ptrace.h>, which does not go with <sys/ptrace.h>. */
#define GET_SIGMASK 0x420a
#define SET_SIGMASK 0x420b

#define EVENT_STOP        128
#define SYSTEM_CALL_STOP  (SIGTRAP | 0x80)
#define SYSTEM_CALL_BYTES 2
/* While its registers are not its own, a thread must not be left. */
#define FOREVER          (-1)
#define CALL_PATIENCE_MS FOREVER

/* What a blocked system call returns inside the kernel when its thread is stopped:
 * the kernel restarts it. */
#define ERESTARTSYS           512
#define ERESTART_RESTARTBLOCK 516

/* Faults cannot be blocked; the last two are the C library's own, which waits for
 * all threads to take them. */
#define UNBLOCKABLE                                                            \
	(bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL) |  \
	 bit_of(SIGTRAP) | bit_of(32) | bit_of(33))

static uint64_t bit_of(int number)
{
	return UINT64_C(1) << (number - 1);
}

static void *number_as_pointer(uint64_t number)
{
	return (void *)number;
}

/* ---- waiting ---------------------------------------------------------------- */

/* Its next stop; 0 or an errno. Looks often at first: most stops come at once. */
static int wait_for_stop(const struct tracee *tracee, int patience_ms,
                         int *status)
{
	int64_t left_us = (int64_t)patience_ms * 1000;
	long pause_us = 20;

	for (;;) {
		struct timespec pause = {.tv_nsec = pause_us * 1000};
		pid_t got =
			waitpid(tracee->thread_id, status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return errno == ECHILD ? ESRCH : errno;
		if (got == tracee->thread_id)
			return WIFSTOPPED(*status) ? 0 : ESRCH;
		if (patience_ms != FOREVER && left_us <= 0)
			return ETIMEDOUT;
		nanosleep(&pause, NULL);
		left_us -= pause_us;
		if (pause_us < 1000)
			pause_us *= 2;
	}
}

/* ---- stopping --------------------------------------------------------------- */

int tracee_seize(struct tracee *tracee, pid_t pid, pid_t thread_id)
{
	*tracee = (struct tracee){.pid = pid, .thread_id = thread_id};
	return ptrace(PTRACE_SEIZE, thread_id, NULL,
	              number_as_pointer(PTRACE_O_TRACESYSGOOD)) < 0
	               ? errno
	               : 0;
}

static int read_state(struct tracee *tracee)
{
	if (ptrace(PTRACE_GETREGS, tracee->thread_id, NULL,
	           &tracee->registers) < 0 ||
	    ptrace(GET_SIGMASK, tracee->thread_id,
	           number_as_pointer(sizeof(tracee->signal_mask)),
	           &tracee->signal_mask) < 0)
		return errno;
	tracee->is_stopped = true;
	return 0;
}

/* A stop of the kind that we have asked for, behind which the kernel restarts
 * system calls. Signals that come first are handed on. */
static int wait_for_trap(struct tracee *tracee, int patience_ms)
{
	int status, code;

	for (;;) {
		code = wait_for_stop(tracee, patience_ms, &status);
		if (code != 0)
			return code;
		if (status >> 16 == EVENT_STOP)
			return WSTOPSIG(status) == SIGTRAP ? 0 : EBUSY;
		if (ptrace(PTRACE_CONT, tracee->thread_id, NULL,
		           number_as_pointer((uint64_t)WSTOPSIG(status))) < 0)
			return errno;
	}
}

/* epoll_wait(2) has its timeout as a number, in milliseconds. */
static bool has_timeout(const struct user_regs_struct *registers)
{
	return ((long)registers->orig_rax == SYS_epoll_wait ||
	        (long)registers->orig_rax == SYS_epoll_pwait) &&
	       (int32_t)registers->r10 > 0;
}

static void settle_time(struct tracee *tracee)
{
	const struct user_regs_struct *registers = &tracee->registers;
	const struct blocked_call call = {
		.number = (long)registers->orig_rax,
		.arguments = {registers->rdi, registers->rsi, registers->rdx,
	                      registers->r10, registers->r8, registers->r9},
	};

	blocked_time_settle(&tracee->blocked, tracee->pid, tracee->thread_id,
	                    &call);
}

int tracee_stop(struct tracee *tracee, int patience_ms)
{
	int code;

	tracee->is_in_c_library = false;
	blocked_time_note(&tracee->blocked, tracee->pid, tracee->thread_id);
	if (ptrace(PTRACE_INTERRUPT, tracee->thread_id, NULL, NULL) < 0)
		return errno;
	code = wait_for_trap(tracee, patience_ms);
	if (code == 0)
		code = read_state(tracee);
	/* It is off the CPU now, which is accounted. */
	if (code == 0 && has_timeout(&tracee->registers))
		settle_time(tracee);
	return code;
}

long tracee_blocked_call(const struct tracee *tracee)
{
	long number = (long)tracee->registers.orig_rax;
	long result = (long)tracee->registers.rax;

	if (number < 0)
		return -1;
	return result == -EINTR || (result <= -ERESTARTSYS &&
	                            result >= -ERESTART_RESTARTBLOCK)
	               ? number
	               : -1;
}

bool tracee_is_in_sequence(const struct tracee *tracee, uint64_t *sequence)
{
	struct {
		uint64_t area;
		uint32_t bytes, signature, flags, unused;
	} registered = {0};
	const long get_rseq = 0x420f; /* Linux 5.13 */

	*sequence = 0;
	if (ptrace((enum __ptrace_request)get_rseq, tracee->thread_id,
	           number_as_pointer(sizeof(registered)), &registered) < 0 ||
	    !registered.area)
		return false;
	errno = 0;
	*sequence =
		(uint64_t)ptrace(PTRACE_PEEKDATA, tracee->thread_id,
	                         number_as_pointer(registered.area + 8), NULL);
	return errno == 0 && *sequence != 0;
}

/* ---- system calls ----------------------------------------------------------- */

/* Only SIGSTOP can come now, and SIGKILL. */
static int set_mask(const struct tracee *tracee, uint64_t mask)
{
	return ptrace(SET_SIGMASK, tracee->thread_id,
	              number_as_pointer(sizeof(mask)), &mask) < 0
	               ? errno
	               : 0;
}

static int divert(struct tracee *tracee)
{
	int code;

	if (tracee->is_diverted)
		return 0;
	code = set_mask(tracee, ~UNBLOCKABLE);
	tracee->is_diverted = code == 0;
	return code;
}

/* To the next entry into the kernel or exit from it. */
static int run_to_system_call(struct tracee *tracee)
{
	int status, code;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tracee->thread_id, NULL, NULL) < 0)
			return errno;
		code = wait_for_stop(tracee, CALL_PATIENCE_MS, &status);
		if (code != 0 || WSTOPSIG(status) == SYSTEM_CALL_STOP)
			return code;
		if (status >> 16 == 0)
			tracee->stop_signal = WSTOPSIG(status);
	}
}

int tracee_call(struct tracee *tracee, uint64_t address, long number,
                const uint64_t arguments[6], uint64_t block, int64_t *result)
{
	struct user_regs_struct registers = tracee->registers;
	int code = divert(tracee);

	if (code != 0)
		return code;
	registers.rip = address;
	registers.rax = (unsigned long)number;
	registers.orig_rax = (unsigned long)-1;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	registers.r15 = block;
	if (ptrace(PTRACE_SETREGS, tracee->thread_id, NULL, &registers) < 0)
		return errno;
	code = run_to_system_call(tracee);
	if (code == 0)
		code = run_to_system_call(tracee);
	if (code != 0)
		return code;
	if (ptrace(PTRACE_GETREGS, tracee->thread_id, NULL, &registers) < 0)
		return errno;
	*result = (int64_t)registers.rax;
	return 0;
}

/* ---- going on --------------------------------------------------------------- */

/* Signals that are pending and not blocked or ignored. */
static uint64_t pending_signals(const struct tracee *tracee)
{
	unsigned long long own = 0, shared = 0, ignored = 0;
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status",
	         (int)tracee->pid, (int)tracee->thread_id);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "SigPnd:", 7) == 0)
			own = strtoull(line + 7, NULL, 16);
		else if (strncmp(line, "ShdPnd:", 7) == 0)
			shared = strtoull(line + 7, NULL, 16);
		else if (strncmp(line, "SigIgn:", 7) == 0)
			ignored = strtoull(line + 7, NULL, 16);
	}
	if (status)
		fclose(status);
	return (own | shared) & ~ignored & ~tracee->signal_mask;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void restore_timeout(const struct tracee *tracee,
                            struct user_regs_struct *registers)
{
	uint64_t gone_ms, timeout_ms;

	if (!has_timeout(registers) || !tracee->is_in_c_library ||
	    !tracee->blocked.is_known)
		return;
	gone_ms = (monotonic_ns() - tracee->blocked.start_ns) / 1000000;
	timeout_ms = (uint32_t)registers->r10;
	registers->r10 = gone_ms < timeout_ms ? timeout_ms - gone_ms : 0;
}

/* epoll_wait(2) and some others return EINTR when their thread is stopped, as if
 * by a signal. The kernel restarts all others by itself. */
static void restart_call(const struct tracee *tracee,
                         struct user_regs_struct *registers)
{
	if ((long)registers->orig_rax < 0 || (long)registers->rax != -EINTR ||
	    pending_signals(tracee))
		return;
	restore_timeout(tracee, registers);
	registers->rax = registers->orig_rax;
	registers->orig_rax = (unsigned long)-1;
	registers->rip -= SYSTEM_CALL_BYTES;
}

/* Behind a system call the kernel does not look for one to restart: it has to be
 * a stop like the first one. */
static int stop_again(struct tracee *tracee)
{
	if (ptrace(PTRACE_INTERRUPT, tracee->thread_id, NULL, NULL) < 0 ||
	    ptrace(PTRACE_CONT, tracee->thread_id, NULL, NULL) < 0)
		return errno;
	return wait_for_trap(tracee, CALL_PATIENCE_MS);
}

int tracee_go_on(struct tracee *tracee, bool detach)
{
	struct user_regs_struct registers = tracee->registers;
	int code = 0;

	if (!tracee->is_stopped)
		return 0;
	if (tracee->is_diverted)
		code = stop_again(tracee);
	restart_call(tracee, &registers);
	if (code == 0 && tracee->is_diverted)
		code = set_mask(tracee, tracee->signal_mask);
	if (code == 0 &&
	    ptrace(PTRACE_SETREGS, tracee->thread_id, NULL, &registers) < 0)
		code = errno;
	if (code == 0 && ptrace(detach ? PTRACE_DETACH : PTRACE_CONT,
	                        tracee->thread_id, NULL, NULL) < 0)
		code = errno;
	if (tracee->stop_signal)
		kill(tracee->pid, tracee->stop_signal);
	tracee->is_stopped = tracee->is_diverted = false;
	tracee->stop_signal = 0;
	return code;
}
