// SPDX-License-Identifier: MIT
/*
 * Memory profiles; see memprof.h. The lock guards the list of them and is held
 * for a few loads and stores only, and while a file is opened.
 */
#include "memprof.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_recorder.h"
#include "alloc_writer.h"
#include "dump_file.h"
#include "lmisclib.h"
#include "vm_guard.h"
#include "host/unwind_table.h"
#include "vm/registry_sig.h"
#include "vm/vm.h"

struct memprof {
	struct memprof *next;
	uint64_t serial; /* tells it from earlier ones */
	struct vm vm;
	struct fast_names fast_names;
	struct dump_file file;
	struct alloc_hook *hook; /* NULL: not in the VM */
	struct alloc_recorder *recorder;
	struct alloc_writer *writer; /* NULL after a fork: it is the parent's */
};

/* There is one allocator in a VM, so its profiles are found by the VM. */
static struct {
	pthread_mutex_t lock;
	struct memprof *first; /* those that run */
	uint64_t serial;       /* of the last one */
} profiles = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list ---------------------------------------------------------------- */

static struct memprof *find_of_vm(const lua_State *L)
{
	struct memprof *profile = profiles.first;

	while (profile && !vm_owns(&profile->vm, L))
		profile = profile->next;
	return profile;
}

static void unlink_profile(struct memprof *profile)
{
	struct memprof **link = &profiles.first;

	while (*link && *link != profile)
		link = &(*link)->next;
	if (*link)
		*link = profile->next;
}

static struct memprof *take_of_vm(const lua_State *L)
{
	struct memprof *profile;

	pthread_mutex_lock(&profiles.lock);
	profile = find_of_vm(L);
	if (profile)
		unlink_profile(profile);
	pthread_mutex_unlock(&profiles.lock);
	return profile;
}

static struct memprof *take_of_serial(uint64_t serial)
{
	struct memprof *profile;

	pthread_mutex_lock(&profiles.lock);
	profile = profiles.first;
	while (profile && profile->serial != serial)
		profile = profile->next;
	if (profile)
		unlink_profile(profile);
	pthread_mutex_unlock(&profiles.lock);
	return profile;
}

/* ---- the end ----------------------------------------------------------------- */

/* Takes our allocator out of the VM. If somebody has put another one over it
 * since, that one still calls ours, which then only passes the calls on. */
static void restore_allocator(lua_State *L, struct memprof *profile)
{
	struct alloc_hook *hook = profile->hook;
	void *data;
	lua_Alloc current = lua_getallocf(L, &data);

	profile->hook = NULL;
	hook->recorder = NULL;
	if (current != alloc_hook_call || data != hook)
		return;
	lua_setallocf(L, hook->inner, hook->inner_data);
	free(hook);
}

static void free_profile(struct memprof *profile)
{
	if (profile->recorder)
		alloc_recorder_close(profile->recorder);
	dump_file_free(&profile->file);
	free(profile);
}

/* The profile is no longer in the list. */
static int end_profile(lua_State *L, struct memprof *profile,
                       struct error *error)
{
	int result;

	if (profile->hook)
		restore_allocator(L, profile);
	if (profile->writer)
		alloc_writer_close(profile->writer);
	result = dump_file_close(&profile->file, error);
	free_profile(profile);
	return result;
}

/* While the VM is being closed. The allocator has to be put back: the VM frees
 * its memory as a whole only if the allocator is its own. */
static void end_with_vm(lua_State *L, uint64_t serial)
{
	struct memprof *profile = take_of_serial(serial);

	if (!profile)
		return;
	vm_registry_forget(profile->vm.global_state);
	end_profile(L, profile, NULL);
}

static const struct vm_guard_kind memprof_guard = {.closing = end_with_vm};

/* ---- the start --------------------------------------------------------------- */

/* Another profile that writes to the same file, by whatever name. */
static const struct memprof *find_of_file(const struct dump_file *file)
{
	const struct memprof *profile = profiles.first;

	while (profile && !dump_file_is_same(&profile->file, file))
		profile = profile->next;
	return profile;
}

/* Puts the profile into the list, so that its file is its own. */
static int claim_file(struct memprof *profile, const char *path,
                      struct error *error)
{
	bool taken;

	if (dump_file_open(&profile->file, path, 0, error) < 0)
		return -1;
	pthread_mutex_lock(&profiles.lock);
	taken = find_of_file(&profile->file) != NULL;
	if (!taken) {
		profile->next = profiles.first;
		profiles.first = profile;
	}
	pthread_mutex_unlock(&profiles.lock);
	if (!taken)
		return 0;
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "%s: the memory profile of another Lua VM writes to "
	                 "this file; give each VM a path of its own",
	                 path);
}

static int open_parts(struct memprof *profile,
                      const struct memprof_options *options,
                      struct error *error)
{
	struct alloc_recorder_options recorder_options = {
		.vm = &profile->vm,
		.sample_bytes = options->sample_bytes,
		.stacks = options->stacks,
	};
	struct alloc_writer_options writer_options = {
		.file = &profile->file,
		.sample_bytes = options->sample_bytes,
		.stacks = options->stacks,
		.vm_number = profile->vm.number,
		.vm_description = profile->vm.description,
		.fast_names = &profile->fast_names,
	};

	profile->recorder = alloc_recorder_open(&recorder_options, error);
	if (!profile->recorder)
		return -1;
	writer_options.recorder = profile->recorder;
	profile->writer = alloc_writer_open(&writer_options, error);
	if (!profile->writer)
		return -1;
	if (!profile->file.failed_errno)
		return 0;
	return dump_file_refuse(profile->file.path, profile->file.failed_errno,
	                        error);
}

static int install_allocator(lua_State *L, struct memprof *profile,
                             struct error *error)
{
	struct alloc_hook *hook = malloc(sizeof(*hook));

	if (!hook)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for a memory profile");
	hook->inner = lua_getallocf(L, &hook->inner_data);
	hook->recorder = profile->recorder;
	profile->hook = hook;
	lua_setallocf(L, alloc_hook_call, hook);
	return 0;
}

static int start_profile(lua_State *L, struct memprof *profile,
                         const struct memprof_options *options,
                         struct error *error)
{
	profile->file.fd = -1;
	if (vm_guard_open(&profile->vm, L, &profile->fast_names, &memprof_guard,
	                  profile->serial, error) < 0)
		return -1;
	if (claim_file(profile, options->path, error) < 0 ||
	    open_parts(profile, options, error) < 0)
		return -1;
	return install_allocator(L, profile, error);
}

static bool is_running(const lua_State *L)
{
	bool running;

	pthread_mutex_lock(&profiles.lock);
	running = find_of_vm(L) != NULL;
	pthread_mutex_unlock(&profiles.lock);
	return running;
}

/* In the child of a fork: ends what the parent has started. */
static void end_inherited(lua_State *L)
{
	struct memprof *profile;

	pthread_mutex_lock(&profiles.lock);
	profile = find_of_vm(L);
	if (profile && profile->writer)
		profile = NULL;
	if (profile)
		unlink_profile(profile);
	pthread_mutex_unlock(&profiles.lock);
	if (!profile)
		return;
	vm_guard_drop(L, &memprof_guard);
	end_profile(L, profile, NULL);
}

static void watch_forks(void);

int memprof_start(lua_State *L, const struct memprof_options *options,
                  struct error *error)
{
	static pthread_once_t forks_watched = PTHREAD_ONCE_INIT;
	struct memprof *profile;

	pthread_once(&forks_watched, watch_forks);
	end_inherited(L);
	if (is_running(L))
		return error_set(error, PROFILE_ERRRUN, EINVAL,
		                 "profiler is running already");
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for a memory profile");
	pthread_mutex_lock(&profiles.lock);
	profile->serial = ++profiles.serial;
	pthread_mutex_unlock(&profiles.lock);
	if (start_profile(L, profile, options, error) == 0)
		return 0;
	pthread_mutex_lock(&profiles.lock);
	unlink_profile(profile);
	pthread_mutex_unlock(&profiles.lock);
	vm_guard_drop(L, &memprof_guard);
	dump_file_remove(&profile->file);
	end_profile(L, profile, NULL);
	return -1;
}

int memprof_stop(lua_State *L, struct error *error)
{
	struct memprof *profile;
	int result;

	end_inherited(L);
	profile = take_of_vm(L);
	if (!profile)
		return error_set(error, PROFILE_ERRRUN, EINVAL,
		                 "profiler is not running in this Lua VM");
	restore_allocator(L, profile);
	vm_guard_drop(L, &memprof_guard);
	result = end_profile(L, profile, error);
	return result;
}

int memprof_check_available(lua_State *L, struct error *error)
{
	return is_running(L) ? 0 : vm_guard_check(L, error);
}

/* ---- fork and exit ------------------------------------------------------------ */

static void lock_before_fork(void)
{
	pthread_mutex_lock(&profiles.lock);
}

static void unlock_in_parent(void)
{
	pthread_mutex_unlock(&profiles.lock);
}

/* The writer threads are the parent's, and so are the dumps: the child lets go
 * of them without writing a byte, and passes allocations on. */
static void forget_in_child(void)
{
	pthread_mutex_init(&profiles.lock, NULL);
	unwind_tables_after_fork();
	for (struct memprof *profile = profiles.first; profile;
	     profile = profile->next) {
		if (profile->hook)
			profile->hook->recorder = NULL;
		profile->writer = NULL;
		dump_file_close(&profile->file, NULL);
	}
}

static void watch_forks(void)
{
	pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
}

/* A process that ends without stop keeps what it has recorded. Other threads
 * may still run Lua, so the allocators stay. */
__attribute__((destructor)) static void end_at_exit(void)
{
	if (pthread_mutex_trylock(&profiles.lock) != 0)
		return;
	for (struct memprof *profile = profiles.first; profile;
	     profile = profile->next) {
		if (!profile->writer)
			continue;
		alloc_recorder_disable(profile->recorder);
		alloc_writer_close(profile->writer);
		profile->writer = NULL;
		dump_file_close(&profile->file, NULL);
	}
	pthread_mutex_unlock(&profiles.lock);
}
