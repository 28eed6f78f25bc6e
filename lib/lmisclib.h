/* SPDX-License-Identifier: MIT */
/*
 * C API of luajit-sysprof: a sampling profiler for an unmodified LuaJIT.
 *
 * Usable from C and C++. One profile per VM. All functions but the
 * callbacks are called from ordinary code, never from a signal handler.
 * luaM_sysprof_last_error() gives the text for any result but success.
 */
#ifndef LMISCLIB_H
#define LMISCLIB_H

#include <stddef.h>
#include <stdint.h>

#include <lua.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LUAMISC_API __attribute__((visibility("default")))

/* Profiling modes. */
#define LUAM_SYSPROF_DEFAULT   0 /* counters by VM state, no dump */
#define LUAM_SYSPROF_LEAF      1 /* dump with the Lua stacks, no host frames */
#define LUAM_SYSPROF_CALLGRAPH 2 /* dump with the Lua and the host stacks */

/* Result codes. */
#define PROFILE_SUCCESS 0
#define PROFILE_ERRUSE  1 /* an argument is wrong */
#define PROFILE_ERRRUN  2 /* running already, or not running */
#define PROFILE_ERRMEM  3 /* out of memory */
#define PROFILE_ERRIO   4 /* I/O; errno tells more */

struct luam_Sysprof_Counters {
	/* Samples by VM state, in the order of the states in a dump. */
	uint64_t vmst_interp;
	uint64_t vmst_lfunc;
	uint64_t vmst_ffunc;
	uint64_t vmst_cfunc;
	uint64_t vmst_gc;
	uint64_t vmst_exit;
	uint64_t vmst_record;
	uint64_t vmst_opt;
	uint64_t vmst_asm;
	uint64_t vmst_trace;
	/* All samples: the sum of the above. */
	uint64_t samples;
};

struct luam_Sysprof_Options {
	uint8_t mode;      /* LUAM_SYSPROF_* */
	uint64_t interval; /* milliseconds of CPU time between samples, >= 1 */
	/* Buffer for the stream, owned by the caller until on_stop is called
	 * with it. Not needed in mode DEFAULT. */
	uint8_t *buf;
	size_t len; /* its size in bytes */
	void *ctx;  /* handed to the writer and to on_stop */
};

/*
 * Takes len bytes at *data; returns how many it took. Fewer than len are an
 * I/O error. Setting *data to NULL ends the stream: sampling stops, and
 * luaM_sysprof_stop() answers PROFILE_ERRIO. Called from the profiler's own
 * thread, never from two threads at once; it must not call Lua.
 */
typedef size_t (*luam_Sysprof_writer)(const void **data, size_t len, void *ctx);

/*
 * Called once when a profile ends, whether by stop, by a start that failed or
 * by lua_close(): releases ctx and buf. Returns 0, or anything else for an
 * I/O error.
 */
typedef int (*luam_Sysprof_on_stop)(void *ctx, uint8_t *buf);

/*
 * Replaces the built-in unwinder for the host part of a sample. It is called
 * in a signal handler, on the thread that is sampled: it may only do what is
 * async-signal-safe. It calls frame_writer with frame numbers and addresses
 * from the innermost frame outwards, until frame_writer returns NULL. Frames
 * numbered 6 or lower are left out: they are taken for the profiler's own.
 */
typedef void (*luam_Sysprof_backtracer)(void *(*frame_writer)(int frame_no,
                                                              void *addr));

/* PROFILE_ERRUSE if the argument is NULL or a profile is running. */
LUAMISC_API int luaM_sysprof_set_writer(luam_Sysprof_writer writer);
LUAMISC_API int luaM_sysprof_set_on_stop(luam_Sysprof_on_stop on_stop);
/* As above, but NULL selects the built-in unwinder. */
LUAMISC_API int luaM_sysprof_set_backtracer(luam_Sysprof_backtracer backtracer);

/*
 * Starts to sample the calling thread, on which L's VM runs. Checks in this
 * order: ERRRUN if a profile runs; ERRUSE for the mode, for a missing buffer
 * or callback (modes LEAF and CALLGRAPH), for interval 0, for a VM that is not
 * supported; ERRIO if the stream's prologue cannot be written. A start that
 * fails calls on_stop(opt->ctx, opt->buf) where one is set.
 */
LUAMISC_API int luaM_sysprof_start(lua_State *L,
                                   const struct luam_Sysprof_Options *opt);

/* ERRRUN if no profile runs; ERRUSE if L belongs to another VM (the profile
 * goes on); ERRIO if the stream or on_stop failed (the profile has ended). */
LUAMISC_API int luaM_sysprof_stop(lua_State *L);

/* Counters of the running profile, or of the last one. ERRUSE for NULL. */
LUAMISC_API int luaM_sysprof_report(struct luam_Sysprof_Counters *counters);

/* Cause and remedy of the last luaM_* call on this thread that failed; an
 * empty string if none did. Valid until the thread's next luaM_* call. */
LUAMISC_API const char *luaM_sysprof_last_error(void);

/* Loaders of the Lua modules misc and below it, for hosts that want them
 * without a module path (package.preload): push the module, return 1. */
LUAMISC_API int luaM_open_misc(lua_State *L);
LUAMISC_API int luaM_open_misc_sysprof(lua_State *L);
LUAMISC_API int luaM_open_misc_memprof(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
