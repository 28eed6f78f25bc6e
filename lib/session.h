// SPDX-License-Identifier: MIT
/*
 * Session: one profile, from start to stop. It is of one VM, of which there is one
 * at most, or of the whole process, and then the only one. It owns the sampled
 * threads and the writer; all of them share the action of one signal.
 *
 * Called from ordinary code on any thread, never from the signal handler. No
 * lock is held while a callback of the host runs, so callbacks may call in
 * here; they are answered that the profile is starting, running or ending.
 */
#ifndef LIB_SESSION_H
#define LIB_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#include "clock.h"
#include "error.h"
#include "lmisclib.h"
#include "perf_names.h"
#include "sampled_threads.h"
#include "sampler_sig.h"
#include "writer.h"

struct session_options {
	uint8_t mode;      /* LUAM_SYSPROF_* */
	bool process;      /* all threads and VMs */
	bool outlives_vm;  /* lua_close() does not end it */
	bool follow_forks; /* children go on, in PATH.PID */
	/* The calling thread and the VM are the profiler's own, and not what
	 * anybody wants to see. */
	bool from_outside;
	int signal;                 /* of the clock, 0: any that is free */
	uint32_t overhead_permille; /* as in struct sampled_threads_options */
	enum perf_names_kind perf;  /* names and stacks for perf too */
	const char *perf_dir;       /* of the jitdump, NULL: /tmp */
	enum perf_names_unwind perf_unwind;
	uint64_t interval_ns; /* of CPU time, of the wall clock, or events */
	enum sample_clock_kind first_clock;
	struct sample_event event; /* first_clock SAMPLE_CLOCK_EVENT */
	enum kernel_frames kernel; /* mode LUAM_SYSPROF_CALLGRAPH */

	const char *path; /* of the dump; NULL: the callbacks take it */
	struct rotation_options rotation;
	int dump_fd; /* of that file, the caller's; 0: it is opened */
	luam_Sysprof_writer writer;
	luam_Sysprof_on_stop on_stop; /* called once when the profile ends, but
	                               * not by a start that failed */
	luam_Sysprof_backtracer backtracer; /* NULL: the built-in unwinder */
	uint8_t *buffer;
	size_t buffer_bytes;
	void *context;
};

/* What a running profile has counted so far, or the last one in all. */
struct session_report {
	bool running;
	uint64_t interval_ns; /* 0: no profile was started yet */
	const char *clock;    /* sample_clock_name(), NULL: as above */
	struct sampler_counters counters;
	struct sampled_threads_facts threads;
	struct writer_facts writer; /* zeros in mode D */
};

/* Samples the calling thread, on which the VM of L runs, or all threads. Changes
 * nothing of a profile that runs already. 0, or -1 with the reason in *error. */
int session_start(lua_State *L, const struct session_options *options,
                  struct error *error);

/* The profile has ended when this returns 0, or -1 with PROFILE_ERRIO. */
int session_stop(lua_State *L, struct error *error);

/* Any profile in this process. */
bool session_is_running(void);

/* Is there one that a start for the VM of L would be refused for? */
bool session_is_in_the_way(lua_State *L);

/* Of the profile that L's VM is in; else, and for NULL, of the newest one, or the
 * one that ended last. */
void session_read_report(lua_State *L, struct session_report *report);

/* At the end of the process: completes all dumps. Those that go through the
 * host's callbacks are not, for what these need may be gone. */
void session_end_all(void);

/* No signal of any clock comes or is pending until they are resumed, and what was
 * sampled is on its way to the disk. Nothing in the child of a vfork(2). */
void session_pause_all(void);
void session_resume_all(void);

/* Could a profile be started here? 0, or -1 with the reason in *error. */
int session_check_available(lua_State *L, struct error *error);

#endif
