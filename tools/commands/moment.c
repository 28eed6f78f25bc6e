// SPDX-License-Identifier: MIT
/* Where a process may be stopped; see moment.h. */
#include "moment.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The highest words of a stack hold arguments and environment. */
#define STACK_BYTES_MAX (8u << 20)

#define BETTER_PATIENCE_MS 300

/* ---- a thread to stop ---------------------------------------------------------- */

static bool has_timeout(int socket, int option)
{
	struct timeval timeout = {0};
	socklen_t bytes = sizeof(timeout);

	return getsockopt(socket, SOL_SOCKET, option, &timeout, &bytes) == 0 &&
	       (timeout.tv_sec != 0 || timeout.tv_usec != 0);
}

/* Is the descriptor that of a socket with a timeout? */
static bool has_socket_timeout(pid_t pid, uint64_t descriptor)
{
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, pid_fd, (int)descriptor, 0);
	bool has = has_timeout(fd, SO_RCVTIMEO) || has_timeout(fd, SO_SNDTIMEO);

	if (fd >= 0)
		close(fd);
	if (pid_fd >= 0)
		close(pid_fd);
	return has;
}

/* The kernel restarts most calls of a thread that was stopped, with the rest of
 * their timeout. Some return EINTR, and are restarted by us: epoll_wait(2) with the
 * rest, others with all of it. */
static enum thread_rank rank_call(pid_t pid, const struct blocked_call *call)
{
	bool is_anew;

	switch (call->number) {
	case -1:
		return THREAD_RUNS;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)call->arguments[3] > 0
		               ? THREAD_GOES_ON_WITH_REST
		               : THREAD_GOES_ON;
	case SYS_rt_sigtimedwait:
		is_anew = call->arguments[2] != 0;
		break;
	case SYS_semtimedop:
	case 441: /* epoll_pwait2 */
		is_anew = call->arguments[3] != 0;
		break;
	case SYS_io_getevents:
	case 333: /* io_pgetevents */
		is_anew = call->arguments[4] != 0;
		break;
	case 426: /* io_uring_enter */
		is_anew = true;
		break;
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
		is_anew = has_socket_timeout(pid, call->arguments[0]);
		break;
	default:
		return THREAD_GOES_ON;
	}
	return is_anew ? THREAD_BEGINS_ANEW : THREAD_GOES_ON;
}

static pid_t choose_now(pid_t pid, enum thread_rank least, size_t *count,
                        enum thread_rank *rank_of_best)
{
	char path[64];
	DIR *directory;
	const struct dirent *entry;
	pid_t best = 0;
	enum thread_rank best_rank = THREAD_RANKS;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)) != NULL) {
		pid_t thread_id = (pid_t)atol(entry->d_name);
		struct blocked_call call;
		enum thread_rank rank;

		if (thread_id <= 0)
			continue;
		++*count;
		call = blocked_call_read(pid, thread_id);
		rank = rank_call(pid, &call);
		if (rank >= least && rank < best_rank) {
			best = thread_id;
			best_rank = rank;
		}
	}
	if (directory)
		closedir(directory);
	*rank_of_best = best_rank;
	return best;
}

/* A short wait often spares a timeout that would begin anew. */
pid_t moment_choose_thread(pid_t pid, enum thread_rank least, size_t *count)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	enum thread_rank rank;
	pid_t best = choose_now(pid, least, count, &rank);

	for (int i = 0; i < BETTER_PATIENCE_MS && rank == THREAD_BEGINS_ANEW &&
	                least < THREAD_BEGINS_ANEW;
	     i++) {
		nanosleep(&pause, NULL);
		best = choose_now(pid, least, count, &rank);
	}
	return best;
}

/* ---- is it a good moment? ------------------------------------------------------- */

/* Does the stack hold the frame of a signal handler, which may have interrupted
 * anything? */
static bool is_in_handler(const struct moment *moment)
{
	uint64_t sp = moment->tracee->registers.rsp & ~UINT64_C(7);
	uint64_t end = target_mapping_end(moment->target, sp);
	size_t bytes = end - sp < STACK_BYTES_MAX ? end - sp : STACK_BYTES_MAX;
	uint64_t *words = end ? malloc(bytes) : NULL;
	bool found = !words || !target_read(moment->target, sp, words, bytes);

	for (size_t i = 0; !found && i < bytes / sizeof(*words); i++)
		found = words[i] == moment->signal_return;
	free(words);
	return found;
}

/* Those that malloc() and the loader use. */
static bool is_of_memory(long number)
{
	return number == SYS_mmap || number == SYS_munmap ||
	       number == SYS_mremap || number == SYS_mprotect ||
	       number == SYS_brk || number == SYS_madvise;
}

/* Outside of those parts of the C library, and of other allocators, that trust in
 * there being one thread only. They call nothing outside, so the place alone tells.
 */
static bool is_outside(const struct moment *moment)
{
	const struct tracee *tracee = moment->tracee;
	long call = tracee_blocked_call(tracee);
	const struct target_code *code =
		target_code_at(moment->target, tracee->registers.rip);

	if (is_in_handler(moment))
		return false;
	if (call >= 0)
		return !is_of_memory(call);
	return !code ||
	       (!target_is_c_library(code) && !strstr(code->name, "malloc") &&
	        !strstr(code->name, "alloc.so"));
}

bool moment_is_good(const struct moment *moment)
{
	uint64_t sequence;

	return !tracee_is_in_sequence(moment->tracee, &sequence) &&
	       (!moment->is_single || is_outside(moment));
}
