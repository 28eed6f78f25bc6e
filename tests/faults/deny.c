// SPDX-License-Identifier: MIT
/*
 * Runs a command under a seccomp filter that refuses some system calls, as the
 * sandboxes of containers and services do.
 *
 * usage: deny CALL[,CALL…] COMMAND [ARGUMENT]…
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 8

static const struct {
	const char *name;
	unsigned int number;
} calls[] = {
	{"perf_event_open", SYS_perf_event_open},
	{"timer_create", SYS_timer_create},
	{"setitimer", SYS_setitimer},
	{"getitimer", SYS_getitimer},
};

static int number_of(const char *name, unsigned int *number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, name) != 0)
			continue;
		*number = calls[i].number;
		return 0;
	}
	fprintf(stderr, "deny: %s is not known here\n", name);
	return -1;
}

/* Load the number; a pair of instructions for each call; allow. */
static int install(const unsigned int *numbers, size_t count)
{
	struct sock_filter code[2 + 2 * CALLS_MAX];
	struct sock_fprog program = {.filter = code};

	code[program.len++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, numbers[i], 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	                                                   SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("deny: seccomp");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int numbers[CALLS_MAX];
	size_t count = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: deny CALL[,CALL...] COMMAND...\n");
		return 2;
	}
	for (char *name = strtok(argv[1], ","); name && count < CALLS_MAX;
	     name = strtok(NULL, ","))
		if (number_of(name, &numbers[count++]) < 0)
			return 2;
	if (install(numbers, count) < 0)
		return 77;
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
