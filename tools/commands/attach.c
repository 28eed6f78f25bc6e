// SPDX-License-Identifier: MIT
/*
 * Getting the agent into a process; see attach.h.
 *
 * One thread of the process is stopped for a moment and made to execute three
 * system calls: mmap(2), mprotect(2) and clone(2). Then it goes on. What the clone
 * does, and why, is told in attach_stub.S; memory that it needs is in a region of
 * its own, whose parts are listed below.
 *
 * A process with several threads can be stopped anywhere: what its threads hold
 * locked they unlock later, while ours wait. One with a single thread may be in a
 * part of the C library that takes no locks as long as there is one thread. So it
 * is stopped until it is found outside, and until it is known to have more threads.
 */
#include "attach.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach_block.h"
#include "commands.h"
#include "target.h"
#include "tracee.h"

extern const char attach_stub_start[], attach_stub_end[];

/* The region. */
#define REGION_CODE_BYTES  4096
#define REGION_BLOCK_BYTES 8192
#define REGION_DTV_BYTES   65536
#define REGION_TLS_BYTES   (1u << 20)
#define REGION_TCB_BYTES   16384
#define REGION_STACK_BYTES (256u << 10)
#define REGION_BYTES                                                           \
	(REGION_CODE_BYTES + REGION_BLOCK_BYTES + REGION_DTV_BYTES +           \
	 REGION_TLS_BYTES + REGION_TCB_BYTES + REGION_STACK_BYTES)

/* The thread control block of glibc on x86-64, what fs points to. */
#define TCB_DTV           8
#define TCB_SELF          16
#define TCB_MANY_THREADS  24
#define TCB_STACK_GUARD   40
#define TCB_POINTER_GUARD 48
#define TCB_FEATURES      72
#define TCB_THREAD_ID     720
#define DTV_ENTRY_BYTES   16

/* The highest words of a stack hold arguments and environment. */
#define STACK_BYTES_MAX (8u << 20)

#define STOP_PATIENCE_MS   500
#define QUIET_TRIES        200
#define QUIET_PAUSE_MS     5
#define THREAD_PATIENCE_MS 200
#define AGENT_PATIENCE_MS  10000

struct attempt {
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

/* ---- what is known from /proc ------------------------------------------------ */

/* A number from the status of a process or thread; -1: it is not there. The last
 * one of the line. */
static long read_status(pid_t pid, pid_t thread_id, const char *name)
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

/* ---- refusals ---------------------------------------------------------------- */

static bool refuse_rights(pid_t pid)
{
	long user = read_status(pid, pid, "Uid:");
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

static bool refuse_errno(pid_t pid, int code)
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

static bool check_state(pid_t pid, bool force)
{
	char state = read_process_state(pid);
	long tracer = read_status(pid, pid, "TracerPid:");

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
	if (read_status(pid, pid, "Seccomp:") > 0 && !force) {
		tell("process %d has a seccomp filter, which may end it for a "
		     "system call of the profiler; --force takes the risk",
		     (int)pid);
		return false;
	}
	return true;
}

/* The process opens it by this path, perhaps in a file system of its own. */
static bool check_file(pid_t pid, const char *path)
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

/* ---- functions of the process ------------------------------------------------- */

static uint64_t find_function(const struct target *target, const char *name)
{
	for (size_t i = 0; i < target->code_count; i++) {
		uint64_t address = 0;

		if (target_is_c_library(&target->codes[i]))
			address = target_find_symbol(target, &target->codes[i],
			                             name);
		if (address)
			return address;
	}
	return 0;
}

static bool find_functions(struct attempt *attempt)
{
	const struct target *target = &attempt->target;
	struct attach_block *block = &attempt->contents;

	block->get_tls_bytes = find_function(target, "_dl_get_tls_static_info");
	block->init_tls = find_function(target, "_dl_allocate_tls_init");
	block->create_thread = find_function(target, "pthread_create");
	block->detach_thread = find_function(target, "pthread_detach");
	block->open_library = find_function(target, "dlopen");
	block->find_symbol = find_function(target, "dlsym");
	block->describe_error = find_function(target, "dlerror");
	return block->get_tls_bytes && block->init_tls &&
	       block->create_thread && block->detach_thread &&
	       block->open_library && block->find_symbol &&
	       block->describe_error;
}

static bool look_into_process(struct attempt *attempt)
{
	static const uint8_t system_call[] = {0x0f, 0x05};
	static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
	                                        0,    0,    0x0f, 0x05};
	const struct target *target = &attempt->target;
	const struct target_code *libc = target_libc(target);

	if (libc) {
		attempt->system_call = target_find_bytes(
			target, libc, system_call, sizeof(system_call));
		attempt->signal_return = target_find_bytes(
			target, libc, signal_return, sizeof(signal_return));
	}
	if (!libc || !attempt->system_call || !find_functions(attempt)) {
		tell("process %d: %s", (int)target->pid,
		     target->code_count == 0
		             ? "it has no memory: a thread of the kernel, or "
		               "it is ending"
		             : "glibc's functions are not found in it: it is "
		               "linked statically or to another C library");
		return false;
	}
	if (target_find_any_symbol(target, "luaJIT_setmode"))
		return true;
	tell("process %d has no LuaJIT that can be found: none is loaded yet, "
	     "or it is a copy without names (`record -- COMMAND` meets those "
	     "that read LUA_INIT)",
	     (int)target->pid);
	return false;
}

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

/* The best thread whose rank is not below least; *count: of all. 0: none. */
static pid_t choose_thread(pid_t pid, int least, size_t *count)
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
static bool is_in_handler(const struct attempt *attempt)
{
	uint64_t sp = attempt->tracee.registers.rsp & ~UINT64_C(7);
	uint64_t end = target_mapping_end(&attempt->target, sp);
	size_t bytes = end - sp < STACK_BYTES_MAX ? end - sp : STACK_BYTES_MAX;
	uint64_t *words = end ? malloc(bytes) : NULL;
	bool found = !words || !target_read(&attempt->target, sp, words, bytes);

	for (size_t i = 0; !found && i < bytes / sizeof(*words); i++)
		found = words[i] == attempt->signal_return;
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
static bool is_outside(const struct attempt *attempt)
{
	const struct tracee *tracee = &attempt->tracee;
	long call = tracee_blocked_call(tracee);
	const struct target_code *code =
		target_code_at(&attempt->target, tracee->registers.rip);

	if (is_in_handler(attempt))
		return false;
	if (call >= 0)
		return !is_of_memory(call);
	return !code ||
	       (!target_is_c_library(code) && !strstr(code->name, "malloc") &&
	        !strstr(code->name, "alloc.so"));
}

static bool is_good_moment(const struct attempt *attempt)
{
	uint64_t sequence;

	return !tracee_is_in_sequence(&attempt->tracee, &sequence) &&
	       (!attempt->is_single || is_outside(attempt));
}

static void pause_ms(long time_ms)
{
	struct timespec pause = {.tv_sec = time_ms / 1000,
	                         .tv_nsec = time_ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* 0, an errno, or EDEADLK: no good moment was found. The tracee is stopped only
 * if 0 is returned. */
static int stop_at_good_moment(struct attempt *attempt)
{
	for (int i = 0; i < QUIET_TRIES; i++) {
		int code = tracee_stop(&attempt->tracee, STOP_PATIENCE_MS);

		if (code != 0)
			return code;
		if (is_good_moment(attempt))
			return 0;
		code = tracee_go_on(&attempt->tracee, false);
		if (code != 0)
			return code;
		/* Not in step with anything. */
		pause_ms(QUIET_PAUSE_MS + i % 7);
	}
	return EDEADLK;
}

/* ---- the three calls ------------------------------------------------------------ */

static int call(struct attempt *attempt, uint64_t address, long number,
                const uint64_t arguments[6], uint64_t *result)
{
	int64_t raw;
	int code = tracee_call(&attempt->tracee, address, number, arguments,
	                       attempt->block, &raw);

	if (code == 0 && raw < 0 && raw > -4096)
		code = (int)-raw;
	*result = (uint64_t)raw;
	return code;
}

static uint64_t region_tcb(const struct attempt *attempt)
{
	return attempt->region + REGION_CODE_BYTES + REGION_BLOCK_BYTES +
	       REGION_DTV_BYTES + REGION_TLS_BYTES;
}

static int map_region(struct attempt *attempt)
{
	const uint64_t arguments[6] = {
		0,
		REGION_BYTES,
		PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS,
		(uint64_t)-1,
		0,
	};
	int code = call(attempt, attempt->system_call, SYS_mmap, arguments,
	                &attempt->region);

	if (code != 0)
		attempt->region = 0;
	attempt->block = attempt->region + REGION_CODE_BYTES;
	return code;
}

/* The thread control block of the new thread is like that of the stopped one as
 * far as all threads agree. */
static bool write_thread_block(const struct attempt *attempt)
{
	const struct target *target = &attempt->target;
	uint64_t host = attempt->tracee.registers.fs_base;
	uint64_t tcb = region_tcb(attempt);
	uint64_t dtv = tcb - REGION_TLS_BYTES - REGION_DTV_BYTES;
	uint64_t entries = REGION_DTV_BYTES / DTV_ENTRY_BYTES - 2;
	uint64_t contents[TCB_FEATURES / 8 + 1] = {0};
	uint64_t of_host[TCB_FEATURES / 8 + 1];
	int32_t thread_id;

	if (!target_read(target, host, of_host, sizeof(of_host)) ||
	    !target_read(target, host + TCB_THREAD_ID, &thread_id,
	                 sizeof(thread_id)) ||
	    of_host[TCB_SELF / 8] != host || thread_id != attempt->thread_id)
		return false;
	contents[0] = contents[TCB_SELF / 8] = tcb;
	contents[TCB_DTV / 8] = dtv + DTV_ENTRY_BYTES;
	contents[TCB_MANY_THREADS / 8] = 1;
	contents[TCB_STACK_GUARD / 8] = of_host[TCB_STACK_GUARD / 8];
	contents[TCB_POINTER_GUARD / 8] = of_host[TCB_POINTER_GUARD / 8];
	contents[TCB_FEATURES / 8] = of_host[TCB_FEATURES / 8];
	return target_write(target, dtv, &entries, sizeof(entries)) &&
	       target_write(target, tcb, contents, sizeof(contents));
}

static bool write_block(struct attempt *attempt, const char *agent)
{
	struct attach_block *block = &attempt->contents;

	block->thread_block = region_tcb(attempt);
	block->tls_bytes_max = REGION_TLS_BYTES;
	block->open_flags = 2; /* RTLD_NOW */
	snprintf(block->symbol, sizeof(block->symbol), "%s", ATTACH_SYMBOL);
	snprintf(block->agent, sizeof(block->agent), "%s", agent);
	block->first_thread_id_address = block->thread_block + TCB_THREAD_ID;
	block->region = attempt->region;
	block->region_bytes = REGION_BYTES;
	return target_write(&attempt->target, attempt->block, block,
	                    sizeof(*block)) &&
	       target_write(&attempt->target, attempt->region,
	                    attach_stub_start,
	                    (uintptr_t)attach_stub_end -
	                            (uintptr_t)attach_stub_start);
}

static int protect_code(struct attempt *attempt)
{
	const uint64_t arguments[6] = {attempt->region, REGION_CODE_BYTES,
	                               PROT_READ | PROT_EXEC};
	uint64_t result;

	return call(attempt, attempt->system_call, SYS_mprotect, arguments,
	            &result);
}

static int make_thread(struct attempt *attempt)
{
	uint64_t tcb = region_tcb(attempt);
	const uint64_t arguments[6] = {
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
			CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		attempt->region + REGION_BYTES - 64,
		0,
		tcb + TCB_THREAD_ID,
		tcb,
		0,
	};
	uint64_t result;

	return call(attempt, attempt->region, SYS_clone, arguments, &result);
}

static int unmap_region(struct attempt *attempt)
{
	const uint64_t arguments[6] = {attempt->region, REGION_BYTES};
	uint64_t result;

	return call(attempt, attempt->system_call, SYS_munmap, arguments,
	            &result);
}

/* With the thread stopped. */
static int start_thread(struct attempt *attempt, const char *agent)
{
	int code = map_region(attempt);

	if (code != 0)
		return code;
	if (!write_thread_block(attempt) || !write_block(attempt, agent))
		code = ENOTSUP;
	if (code == 0)
		code = protect_code(attempt);
	if (code == 0)
		code = make_thread(attempt);
	if (code != 0)
		unmap_region(attempt);
	return code;
}

static int32_t read_block_state(const struct attempt *attempt)
{
	int32_t state = ATTACH_NOTHING;

	target_read(&attempt->target, attempt->block + BLOCK_STATE, &state,
	            sizeof(state));
	return state;
}

/* What the C library does when it makes a second thread, only that it does so for
 * the thread that asks for it. */
static void tell_of_threads(const struct attempt *attempt)
{
	static const int32_t yes = 1;

	target_write(&attempt->target,
	             attempt->tracee.registers.fs_base + TCB_MANY_THREADS, &yes,
	             sizeof(yes));
	for (int i = 0; i < THREAD_PATIENCE_MS &&
	                read_block_state(attempt) == ATTACH_NOTHING;
	     i++)
		pause_ms(1);
}

/* ---- from the start to the socket ------------------------------------------------ */

static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, before);
}

static int divert_thread(struct attempt *attempt, const char *agent)
{
	sigset_t before;
	int code, code_of_end;

	block_signals(&before);
	code = stop_at_good_moment(attempt);
	if (code == 0) {
		code = start_thread(attempt, agent);
		if (code == 0 && attempt->is_single)
			tell_of_threads(attempt);
		code_of_end = tracee_go_on(&attempt->tracee, true);
		if (code == 0)
			code = code_of_end;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

/* ptrace(2) is left to a process that ends: this lets go of all threads for sure,
 * also of those that have not stopped yet. The attempt is shared with it. Returns
 * what work returns, 0 or an errno. */
static int trace_in_child(struct attempt *attempt, const char *agent,
                          int (*work)(struct attempt *attempt,
                                      const char *agent))
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0)
		_exit(work(attempt, agent));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* One thread after the other, until one can be stopped. */
static int start_agent(struct attempt *attempt, const char *agent)
{
	pid_t pid = attempt->target.pid;
	int code = ESRCH;

	for (int least = 0; least < 3; least++) {
		size_t count;
		pid_t thread_id = choose_thread(pid, least, &count);

		if (thread_id == 0)
			continue;
		attempt->is_single = count == 1;
		attempt->thread_id =
			(pid_t)read_status(pid, thread_id, "NSpid:");
		code = tracee_seize(&attempt->tracee, pid, thread_id);
		if (code == 0)
			code = divert_thread(attempt, agent);
		if (code != ETIMEDOUT && code != ESRCH)
			break;
	}
	return code;
}

static bool refuse_start(pid_t pid, int code)
{
	if (code == EDEADLK)
		tell("process %d: no moment was found at which its only "
		     "thread is outside of the C library; try again",
		     (int)pid);
	else if (code == ENOTSUP)
		tell("process %d: the threads of its C library are laid out in "
		     "an unknown way",
		     (int)pid);
	else
		refuse_errno(pid, code);
	return false;
}

/* The agent is ready, or says why not, or what is before it does. */
static int32_t wait_for_agent(struct attempt *attempt)
{
	int32_t state = ATTACH_NOTHING;

	for (int i = 0; i < AGENT_PATIENCE_MS; i += 2) {
		state = read_block_state(attempt);
		if (state != ATTACH_NOTHING && state != ATTACH_THREAD_RUNS)
			break;
		pause_ms(2);
	}
	target_read(&attempt->target, attempt->block, &attempt->contents,
	            sizeof(attempt->contents));
	return state;
}

/* It unmaps the region and ends. */
static void abandon_agent(const struct attempt *attempt)
{
	static const int32_t yes = 1;

	target_write(&attempt->target,
	             attempt->block + offsetof(struct attach_block, abandoned),
	             &yes, sizeof(yes));
}

/* Where there is no agent to do it: once more by a thread that is stopped. */
static int unmap_by_thread(struct attempt *attempt, const char *agent)
{
	pid_t pid = attempt->target.pid;
	size_t count;
	pid_t thread_id = choose_thread(pid, 0, &count);
	sigset_t before;
	int code;

	(void)agent;
	if (thread_id == 0)
		return ESRCH;
	code = tracee_seize(&attempt->tracee, pid, thread_id);
	if (code != 0)
		return code;
	block_signals(&before);
	code = tracee_stop(&attempt->tracee, STOP_PATIENCE_MS);
	if (code == 0) {
		unmap_region(attempt);
		code = tracee_go_on(&attempt->tracee, true);
	}
	return code;
}

static void take_region_back(struct attempt *attempt)
{
	int32_t first = 1;

	for (int i = 0; i < THREAD_PATIENCE_MS && first; i++) {
		pause_ms(1);
		target_read(&attempt->target,
		            attempt->contents.first_thread_id_address, &first,
		            sizeof(first));
	}
	/* The thread that was to load it ends by then. */
	pause_ms(20);
	if (!first)
		trace_in_child(attempt, NULL, unmap_by_thread);
}

static bool refuse_agent(struct attempt *attempt, int32_t state)
{
	const struct attach_block *block = &attempt->contents;
	pid_t pid = attempt->target.pid;

	switch (state) {
	case ATTACH_NO_THREAD:
		tell("process %d: a thread cannot be made in it: %s", (int)pid,
		     block->code == ATTACH_TLS_TOO_BIG
		             ? "too many thread-local variables"
		             : strerror(block->code));
		take_region_back(attempt);
		break;
	case ATTACH_NO_AGENT:
		tell("process %d: the agent cannot be loaded: %.500s", (int)pid,
		     block->error);
		take_region_back(attempt);
		break;
	case ATTACH_AGENT_FAILED:
		tell("process %d: %.500s", (int)pid, block->error);
		abandon_agent(attempt);
		break;
	default:
		tell("process %d does not load the agent: %s", (int)pid,
		     kill(pid, 0) < 0
		             ? "it has ended"
		             : "its dynamic loader is busy; it gives up when "
		               "it comes to it");
		abandon_agent(attempt);
	}
	return false;
}

static bool connect_agent(struct attempt *attempt,
                          struct attachment *attachment)
{
	int32_t state = wait_for_agent(attempt);

	if (state != ATTACH_READY)
		return refuse_agent(attempt, state);
	attachment->socket = (int)syscall(SYS_pidfd_getfd, attachment->pid_fd,
	                                  attempt->contents.socket, 0);
	if (attachment->socket >= 0)
		return true;
	tell("process %d: its socket cannot be taken over: %s (pidfd_getfd "
	     "needs Linux 5.6)",
	     (int)attachment->pid, strerror(errno));
	abandon_agent(attempt);
	return false;
}

static bool open_process(struct attempt *attempt, pid_t pid, const char *agent,
                         bool force)
{
	int code;

	if (!check_state(pid, force))
		return false;
	code = target_open(&attempt->target, pid);
	if (code != 0)
		return refuse_errno(pid, code);
	return check_file(pid, agent) && look_into_process(attempt);
}

static bool open_attachment(struct attempt *attempt,
                            struct attachment *attachment, const char *agent,
                            bool force)
{
	pid_t pid = attachment->pid;
	int code;

	if (!open_process(attempt, pid, agent, force))
		return false;
	attachment->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (attachment->pid_fd < 0)
		return refuse_start(pid, errno);
	code = trace_in_child(attempt, agent, start_agent);
	return code == 0 ? connect_agent(attempt, attachment)
	                 : refuse_start(pid, code);
}

bool attach_open(struct attachment *attachment, pid_t pid, const char *agent,
                 bool force)
{
	struct attempt *attempt =
		mmap(NULL, sizeof(*attempt), PROT_READ | PROT_WRITE,
	             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool done;

	*attachment =
		(struct attachment){.pid = pid, .pid_fd = -1, .socket = -1};
	if (attempt == MAP_FAILED)
		return refuse_start(pid, ENOMEM);
	attempt->target.memory = -1;
	done = open_attachment(attempt, attachment, agent, force);
	target_close(&attempt->target);
	munmap(attempt, sizeof(*attempt));
	if (!done)
		attach_close(attachment);
	return done;
}

void attach_close(struct attachment *attachment)
{
	if (attachment->pid_fd >= 0)
		close(attachment->pid_fd);
	if (attachment->socket >= 0)
		close(attachment->socket);
	attachment->pid_fd = attachment->socket = -1;
}

/* ---- messages --------------------------------------------------------------------- */

bool attach_send_settings(const struct attachment *attachment,
                          const char *settings, int dump)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
	                        .cmsg_level = SOL_SOCKET,
	                        .cmsg_type = SCM_RIGHTS}};
	struct iovec text = {(void *)settings, strlen(settings)};
	struct msghdr message = {
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &dump, sizeof(dump));
	if (strlen(settings) < ATTACH_MESSAGE_BYTES &&
	    sendmsg(attachment->socket, &message, MSG_NOSIGNAL) >= 0)
		return true;
	tell("process %d: the agent is gone: %s", (int)attachment->pid,
	     strerror(errno));
	return false;
}

char attach_receive(const struct attachment *attachment, int patience_ms,
                    char *text, size_t bytes)
{
	struct pollfd ready[] = {
		{.fd = attachment->socket, .events = POLLIN},
		{.fd = attachment->pid_fd, .events = POLLIN},
	};
	char message[BLOCK_ERROR_BYTES + 2];
	ssize_t length;

	text[0] = '\0';
	if (poll(ready, 2, patience_ms) <= 0 || !ready[0].revents)
		return '\0';
	length = recv(attachment->socket, message, sizeof(message) - 1,
	              MSG_DONTWAIT);
	if (length <= 0)
		return '\0';
	message[length] = '\0';
	snprintf(text, bytes, "%s", message + 1);
	return message[0];
}
