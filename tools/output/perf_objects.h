// SPDX-License-Identifier: MIT
/*
 * Addresses for the frames of a profile, and the objects beside a perf.data by
 * which perf names them (companion.h): OUTPUT.lua with Lua and library
 * functions, OUTPUT.native with native code that no file here has a symbol for,
 * and OUTPUT.kernel, a module for perf, with the kernel's.
 * The rest is where it was in the process.
 */
#ifndef OUTPUT_PERF_OBJECTS_H
#define OUTPUT_PERF_OBJECTS_H

#include "companion.h"
#include "perf_record.h"
#include "profile/profile.h"

enum perf_object {
	PERF_OBJECT_LUA,
	PERF_OBJECT_NATIVE,
	PERF_OBJECT_KERNEL,
	PERF_OBJECT_COUNT
};

struct perf_objects {
	const struct profile *profile;
	const char *output;                 /* path of the perf.data */
	bool has_states;                    /* states have addresses, too */
	bool has_object[PERF_OBJECT_COUNT]; /* that are written */
	/* Set by perf_objects_write(). */
	uint64_t *addresses; /* by frame */
	uint64_t states[STATE_COUNT];
	uint64_t no_stack; /* stands for a stack without frames */
	uint8_t build_ids[PERF_OBJECT_COUNT][COMPANION_BUILD_ID_BYTES];
	uint64_t code_bytes[PERF_OBJECT_COUNT];
};

/* Gives out the addresses and writes the objects. 0 or a negative errno. */
int perf_objects_write(struct perf_objects *objects);
void perf_objects_free(struct perf_objects *objects);

/* A PERF_RECORD_MMAP2 of one of them, but for what identifies its sample. */
void perf_objects_put_mapping(const struct perf_objects *objects,
                              enum perf_object object,
                              struct perf_record *record, uint32_t pid);

#endif
