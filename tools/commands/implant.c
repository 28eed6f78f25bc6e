// SPDX-License-Identifier: MIT
/*
 * The agent's way into a process; see implant.h.
 *
 * One thread of the process is stopped for a moment and made to execute three
 * system calls: mmap(2), mprotect(2) and clone(2). Then it goes on. What the clone
 * does, and why, is told in attach_stub.S; memory that it needs is in a region of
 * its own, whose parts are listed below.
 *
 * A process with a single thread is stopped until it is known to have more, so that
 * its C library takes locks.
 */
#include "implant.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "lua_children.h"
#include "moment.h"
#include "refusal.h"

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

#define STOP_PATIENCE_MS   500
#define QUIET_TRIES        200
#define QUIET_PAUSE_MS     5
#define THREAD_PATIENCE_MS 200
#define AGENT_PATIENCE_MS  10000

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

static bool find_functions(struct implant *implant)
{
	const struct target *target = &implant->target;
	struct attach_block *block = &implant->contents;

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

bool implant_look(struct implant *implant)
{
	static const uint8_t system_call[] = {0x0f, 0x05};
	static const uint8_t signal_return[] = {0x48, 0xc7, 0xc0, 0x0f, 0,
	                                        0,    0,    0x0f, 0x05};
	const struct target *target = &implant->target;
	const struct target_code *libc = target_libc(target);
	char children[LUA_CHILDREN_BYTES];

	if (libc) {
		implant->system_call = target_find_bytes(
			target, libc, system_call, sizeof(system_call));
		implant->signal_return = target_find_bytes(
			target, libc, signal_return, sizeof(signal_return));
	}
	if (!libc || !implant->system_call || !find_functions(implant)) {
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
	if (lua_children_find(target->pid, NULL, 0, children)) {
		tell("process %d runs no Lua itself, but its children do: -p "
		     "%s profiles them",
		     (int)target->pid, children);
		return false;
	}
	tell("process %d has no LuaJIT that can be found: none is loaded yet, "
	     "or it is a copy without names (`record -- COMMAND` meets those "
	     "that read LUA_INIT)",
	     (int)target->pid);
	return false;
}

/* ---- stopping ------------------------------------------------------------------ */

static void pause_ms(long time_ms)
{
	struct timespec pause = {.tv_sec = time_ms / 1000,
	                         .tv_nsec = time_ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* 0, an errno, or EDEADLK: no good moment was found. The tracee is stopped only
 * if 0 is returned. */
static int stop_at_good_moment(struct implant *implant)
{
	const struct moment moment = {
		.target = &implant->target,
		.tracee = &implant->tracee,
		.is_single = implant->is_single,
		.signal_return = implant->signal_return,
	};

	for (int i = 0; i < QUIET_TRIES; i++) {
		const struct target_code *code_there;
		int code = tracee_stop(&implant->tracee, STOP_PATIENCE_MS);

		if (code != 0)
			return code;
		code_there = target_code_at(&implant->target,
		                            implant->tracee.registers.rip);
		implant->tracee.is_in_c_library =
			code_there && target_is_c_library(code_there);
		if (moment_is_good(&moment))
			return 0;
		code = tracee_go_on(&implant->tracee, false);
		if (code != 0)
			return code;
		/* Not in step with anything. */
		pause_ms(QUIET_PAUSE_MS + i % 7);
	}
	return EDEADLK;
}

/* ---- the three calls ------------------------------------------------------------ */

static int call(struct implant *implant, uint64_t address, long number,
                const uint64_t arguments[6], uint64_t *result)
{
	int64_t raw;
	int code = tracee_call(&implant->tracee, address, number, arguments,
	                       implant->block, &raw);

	if (code == 0 && raw < 0 && raw > -4096)
		code = (int)-raw;
	*result = (uint64_t)raw;
	return code;
}

static uint64_t region_tcb(const struct implant *implant)
{
	return implant->region + REGION_CODE_BYTES + REGION_BLOCK_BYTES +
	       REGION_DTV_BYTES + REGION_TLS_BYTES;
}

static int map_region(struct implant *implant)
{
	const uint64_t arguments[6] = {
		0,
		REGION_BYTES,
		PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS,
		(uint64_t)-1,
		0,
	};
	int code = call(implant, implant->system_call, SYS_mmap, arguments,
	                &implant->region);

	if (code != 0)
		implant->region = 0;
	implant->block = implant->region + REGION_CODE_BYTES;
	return code;
}

/* The thread control block of the new thread is like that of the stopped one as
 * far as all threads agree. */
static bool write_thread_block(const struct implant *implant)
{
	const struct target *target = &implant->target;
	uint64_t host = implant->tracee.registers.fs_base;
	uint64_t tcb = region_tcb(implant);
	uint64_t dtv = tcb - REGION_TLS_BYTES - REGION_DTV_BYTES;
	uint64_t entries = REGION_DTV_BYTES / DTV_ENTRY_BYTES - 2;
	uint64_t contents[TCB_FEATURES / 8 + 1] = {0};
	uint64_t of_host[TCB_FEATURES / 8 + 1];
	int32_t thread_id;

	if (!target_read(target, host, of_host, sizeof(of_host)) ||
	    !target_read(target, host + TCB_THREAD_ID, &thread_id,
	                 sizeof(thread_id)) ||
	    of_host[TCB_SELF / 8] != host || thread_id != implant->thread_id)
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

static bool write_block(struct implant *implant, const char *agent)
{
	struct attach_block *block = &implant->contents;

	block->thread_block = region_tcb(implant);
	block->tls_bytes_max = REGION_TLS_BYTES;
	block->open_flags = 2; /* RTLD_NOW */
	snprintf(block->symbol, sizeof(block->symbol), "%s", ATTACH_SYMBOL);
	snprintf(block->agent, sizeof(block->agent), "%s", agent);
	block->first_thread_id_address = block->thread_block + TCB_THREAD_ID;
	block->region = implant->region;
	block->region_bytes = REGION_BYTES;
	return target_write(&implant->target, implant->block, block,
	                    sizeof(*block)) &&
	       target_write(&implant->target, implant->region,
	                    attach_stub_start,
	                    (uintptr_t)attach_stub_end -
	                            (uintptr_t)attach_stub_start);
}

static int protect_code(struct implant *implant)
{
	const uint64_t arguments[6] = {implant->region, REGION_CODE_BYTES,
	                               PROT_READ | PROT_EXEC};
	uint64_t result;

	return call(implant, implant->system_call, SYS_mprotect, arguments,
	            &result);
}

static int make_thread(struct implant *implant)
{
	uint64_t tcb = region_tcb(implant);
	const uint64_t arguments[6] = {
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
			CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		implant->region + REGION_BYTES - 64,
		0,
		tcb + TCB_THREAD_ID,
		tcb,
		0,
	};
	uint64_t result;

	return call(implant, implant->region, SYS_clone, arguments, &result);
}

static int unmap_region(struct implant *implant)
{
	const uint64_t arguments[6] = {implant->region, REGION_BYTES};
	uint64_t result;

	return call(implant, implant->system_call, SYS_munmap, arguments,
	            &result);
}

/* With the thread stopped. */
static int start_thread(struct implant *implant, const char *agent)
{
	int code = map_region(implant);

	if (code != 0)
		return code;
	if (!write_thread_block(implant) || !write_block(implant, agent))
		code = ENOTSUP;
	if (code == 0)
		code = protect_code(implant);
	if (code == 0)
		code = make_thread(implant);
	if (code != 0)
		unmap_region(implant);
	return code;
}

static int32_t read_block_state(const struct implant *implant)
{
	int32_t state = ATTACH_NOTHING;

	target_read(&implant->target, implant->block + BLOCK_STATE, &state,
	            sizeof(state));
	return state;
}

/* What the C library does when it makes a second thread, only that it does so for
 * the thread that asks for it. */
static void tell_of_threads(const struct implant *implant)
{
	static const int32_t yes = 1;

	target_write(&implant->target,
	             implant->tracee.registers.fs_base + TCB_MANY_THREADS, &yes,
	             sizeof(yes));
	for (int i = 0; i < THREAD_PATIENCE_MS &&
	                read_block_state(implant) == ATTACH_NOTHING;
	     i++)
		pause_ms(1);
}

/* ---- the stopped thread, from first to last ------------------------------------- */

static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, before);
}

static int divert_thread(struct implant *implant, const char *agent)
{
	sigset_t before;
	int code, code_of_end;

	block_signals(&before);
	code = stop_at_good_moment(implant);
	if (code == 0) {
		code = start_thread(implant, agent);
		if (code == 0 && implant->is_single)
			tell_of_threads(implant);
		code_of_end = tracee_go_on(&implant->tracee, true);
		if (code == 0)
			code = code_of_end;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

/* ptrace(2) is left to a process that ends: this lets go of all threads for sure,
 * also of those that have not stopped yet. The implant is shared with it. Returns
 * what work returns, 0 or an errno. */
static int trace_in_child(struct implant *implant, const char *agent,
                          int (*work)(struct implant *implant,
                                      const char *agent))
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return errno;
	if (child == 0)
		_exit(work(implant, agent));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* One thread after the other, until one can be stopped. */
static int start_agent(struct implant *implant, const char *agent)
{
	pid_t pid = implant->target.pid;
	int code = ESRCH;

	for (int least = THREAD_GOES_ON; least < THREAD_RANKS; least++) {
		size_t count;
		pid_t thread_id = moment_choose_thread(
			pid, (enum thread_rank)least, &count);

		if (thread_id == 0)
			continue;
		implant->is_single = count == 1;
		implant->thread_id =
			(pid_t)read_thread_status(pid, thread_id, "NSpid:");
		code = tracee_seize(&implant->tracee, pid, thread_id);
		if (code == 0)
			code = divert_thread(implant, agent);
		if (code != ETIMEDOUT && code != ESRCH)
			break;
	}
	return code;
}

int implant_start(struct implant *implant, const char *agent)
{
	return trace_in_child(implant, agent, start_agent);
}

/* ---- what becomes of it --------------------------------------------------------- */

int32_t implant_wait(struct implant *implant)
{
	int32_t state = ATTACH_NOTHING;

	for (int i = 0; i < AGENT_PATIENCE_MS; i += 2) {
		state = read_block_state(implant);
		if (state != ATTACH_NOTHING && state != ATTACH_THREAD_RUNS)
			break;
		pause_ms(2);
	}
	target_read(&implant->target, implant->block, &implant->contents,
	            sizeof(implant->contents));
	return state;
}

void implant_abandon(const struct implant *implant)
{
	static const int32_t yes = 1;

	target_write(&implant->target,
	             implant->block + offsetof(struct attach_block, abandoned),
	             &yes, sizeof(yes));
}

/* Where there is no agent to do it: once more by a thread that is stopped. */
static int unmap_by_thread(struct implant *implant, const char *agent)
{
	pid_t pid = implant->target.pid;
	size_t count;
	pid_t thread_id = moment_choose_thread(pid, THREAD_GOES_ON, &count);
	sigset_t before;
	int code;

	(void)agent;
	if (thread_id == 0)
		return ESRCH;
	code = tracee_seize(&implant->tracee, pid, thread_id);
	if (code != 0)
		return code;
	block_signals(&before);
	code = tracee_stop(&implant->tracee, STOP_PATIENCE_MS);
	if (code == 0) {
		unmap_region(implant);
		code = tracee_go_on(&implant->tracee, true);
	}
	return code;
}

void implant_take_back(struct implant *implant)
{
	int32_t first = 1;

	for (int i = 0; i < THREAD_PATIENCE_MS && first; i++) {
		pause_ms(1);
		target_read(&implant->target,
		            implant->contents.first_thread_id_address, &first,
		            sizeof(first));
	}
	/* The thread that was to load it ends by then. */
	pause_ms(20);
	if (!first)
		trace_in_child(implant, NULL, unmap_by_thread);
}
