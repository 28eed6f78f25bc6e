// SPDX-License-Identifier: MIT
/* What cannot be attached to, and why; see refusal.h. */
#include "refusal.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

/* ---- what is known from /proc ------------------------------------------------ */

long read_thread_status(pid_t pid, pid_t thread_id, const char *name)
{
	char path[64], line[512];
	FILE *status;
	long value = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid,
	         (int)thread_id);
	status = fopen(path, "re");
	while (status && value < 0 && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, name, strlen(name)) == 0 && last)
			value = atol(last + 1);
	}
	if (status)
		fclose(status);
	return value;
}

static char read_process_state(pid_t pid)
{
	char path[64], line[512];
	const char *behind_name = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file))
		behind_name = strrchr(line, ')');
	if (file)
		fclose(file);
	return behind_name && behind_name[1] ? behind_name[2] : '\0';
}

static bool owner_of(pid_t pid, uid_t *owner)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (stat(path, &status) < 0)
		return false;
	*owner = status.st_uid;
	return true;
}

static int read_ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file) {
		if (fscanf(file, "%d", &scope) != 1)
			scope = 0;
		fclose(file);
	}
	return scope;
}

/* Byte 4 of an ELF file is its class, 1 for 32 bits. */
static bool is_32_bit(pid_t pid)
{
	char path[64], head[5] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fread(head, sizeof(head), 1, file) != 1)
		head[4] = 0;
	fclose(file);
	return head[4] == 1;
}

/* ---- refusals ---------------------------------------------------------------- */

static bool refuse_rights(pid_t pid)
{
	long user = read_thread_status(pid, pid, "Uid:");
	int scope = read_ptrace_scope();
	const struct passwd *entry;
	uid_t owner;

	if (!owner_of(pid, &owner)) {
		tell("process %d: there is none", (int)pid);
		return false;
	}
	entry = getpwuid(owner);
	if (scope == 3)
		tell("process %d: kernel.yama.ptrace_scope is 3: nobody may "
		     "attach to a process until the machine is started again",
		     (int)pid);
	else if (geteuid() == 0)
		tell("process %d: attaching is forbidden, even to root: a "
		     "container needs the capability CAP_SYS_PTRACE",
		     (int)pid);
	else if (owner != geteuid() && user == (long)geteuid())
		tell("process %d has gained rights (setuid, capabilities): "
		     "only root may attach to it",
		     (int)pid);
	else if (owner != geteuid())
		tell("process %d is one of the user %s: run this as that user "
		     "or as root",
		     (int)pid, entry ? entry->pw_name : "of another id");
	else if (scope > 0)
		tell("process %d: kernel.yama.ptrace_scope is %d: run this as "
		     "root%s",
		     (int)pid, scope,
		     scope == 1 ? ", or allow it by sysctl "
		                  "kernel.yama.ptrace_scope=0"
		                : "");
	else
		tell("process %d: attaching is not permitted: run this as root",
		     (int)pid);
	return false;
}

bool refuse_errno(pid_t pid, int code)
{
	if (code == EPERM || code == EACCES)
		return refuse_rights(pid);
	if (code == ESRCH || code == ENOENT)
		tell("process %d: there is none", (int)pid);
	else if (code == EBUSY)
		tell("process %d is stopped: let it go on first (kill -CONT)",
		     (int)pid);
	else if (code == ETIMEDOUT)
		tell("process %d does not stop: it waits for a device or a "
		     "child; try again later",
		     (int)pid);
	else
		tell("process %d: %s", (int)pid, strerror(code));
	return false;
}

bool check_state(pid_t pid, bool force)
{
	char state = read_process_state(pid);
	long tracer = read_thread_status(pid, pid, "TracerPid:");

	if (pid == getpid()) {
		tell("process %d is this one", (int)pid);
		return false;
	}
	if (state == '\0')
		return refuse_errno(pid, ESRCH);
	if (state == 'Z' || state == 'X') {
		tell("process %d has ended; its parent has not noticed yet",
		     (int)pid);
		return false;
	}
	if (tracer > 0) {
		tell("process %d is traced by process %ld (a debugger, "
		     "strace): there can be one at a time",
		     (int)pid, tracer);
		return false;
	}
	if (state == 'T')
		return refuse_errno(pid, EBUSY);
	if (is_32_bit(pid)) {
		tell("process %d is a 32-bit program; LuaJIT is profiled in "
		     "64-bit ones",
		     (int)pid);
		return false;
	}
	if (read_thread_status(pid, pid, "Seccomp:") > 0 && !force) {
		tell("process %d has a seccomp filter, which may end it for a "
		     "system call of the profiler; --force takes the risk",
		     (int)pid);
		return false;
	}
	return true;
}

bool check_file(pid_t pid, const char *path)
{
	char inside[4200];
	struct stat own, its;

	snprintf(inside, sizeof(inside), "/proc/%d/root%.4096s", (int)pid,
	         path);
	if (stat(path, &own) == 0 && stat(inside, &its) == 0 &&
	    own.st_size == its.st_size)
		return true;
	tell("process %d does not see %s: it has other mounts or another root "
	     "(a container); install luajit-sysprof there, at the same place",
	     (int)pid, path);
	return false;
}
