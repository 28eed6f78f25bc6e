// SPDX-License-Identifier: MIT
/* Where a process may be stopped; see moment.h. */
#include "moment.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* The highest words of a stack hold arguments and environment. */
#define STACK_BYTES_MAX (8u << 20)

/* ---- a thread to stop ---------------------------------------------------------- */

/* Calls that return EINTR when their thread is stopped. They can be restarted, but
 * with their timeout anew: other threads are better. */
static bool is_restarted_by_us(long number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case 441: /* epoll_pwait2 */
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case 426: /* io_uring_enter */
		return true;
	default:
		return false;
	}
}

/* How suitable: the less the better. */
static int rank_thread(pid_t pid, pid_t thread_id)
{
	char path[64], line[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid,
	         (int)thread_id);
	file = fopen(path, "re");
	if (file) {
		if (!fgets(line, sizeof(line), file))
			line[0] = '\0';
		fclose(file);
	}
	if (line[0] < '0' || line[0] > '9')
		return 1; /* running, or not known */
	return is_restarted_by_us(atol(line)) ? 2 : 0;
}

pid_t moment_choose_thread(pid_t pid, int least, size_t *count)
{
	char path[64];
	DIR *directory;
	const struct dirent *entry;
	pid_t best = 0;
	int best_rank = 3;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory)) != NULL) {
		pid_t thread_id = (pid_t)atol(entry->d_name);
		int rank;

		if (thread_id <= 0)
			continue;
		++*count;
		rank = rank_thread(pid, thread_id);
		if (rank >= least && rank < best_rank) {
			best = thread_id;
			best_rank = rank;
		}
	}
	if (directory)
		closedir(directory);
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
