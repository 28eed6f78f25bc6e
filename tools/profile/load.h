// SPDX-License-Identifier: MIT
/*
 * Loads a dump into a profile: reads it once, front to back, resolves names in
 * stream order and joins the two stacks of each sample.
 *
 * Stacks that the extension brings are taken as they are. Samples without it
 * are joined by join.h and counted in profile->gaps, unless options->compat
 * asks for the old parser's way, which ignores the extension.
 */
#ifndef PROFILE_LOAD_H
#define PROFILE_LOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "profile.h"
#include "stream/codec.h"

/* Longest list of a filter. */
#define LOAD_FILTER_MAX 64

/* Numbers that samples are chosen by; none: all samples. */
struct load_filter {
	uint64_t accepted[LOAD_FILTER_MAX];
	size_t count;
};

struct load_options {
	bool compat;         /* names and stacks as the old parser's */
	bool host_addresses; /* native frames and C functions as 0x… */
	/* Native frames that a file has a symbol for are told apart by their
	 * address, and have no lines and no inlined functions: whoever reads
	 * the file finds those. */
	bool native_addresses;
	bool vm_parts;       /* what the VM does for the innermost function */
	bool inlines;        /* native frames also of inlined functions */
	bool native_lines;   /* native frames have their source line */
	const char *sysroot; /* before paths of object files; NULL: none */
	/* Told of object files that cannot be used; may be NULL. */
	void (*notice)(const char *text);
	bool labels;  /* tags have thread, VM, coroutine and its label */
	bool moments; /* the profile has a list of samples in time */
	/* Nobody looks behind the end record: the input may wait there. */
	bool is_live;

	uint32_t states; /* bit 1 << state: the samples wanted; 0: all */
	struct load_filter threads;
	struct load_filter vms;
	struct load_filter coroutines;
	bool has_from; /* from_ns and to_ns since the session's start */
	bool has_to;
	uint64_t from_ns;
	uint64_t to_ns;

	/* Called now and then, with the bytes that were read; may be NULL. */
	void (*progress)(void *context, uint64_t bytes);
	void *progress_context;
};

struct load_result {
	bool complete;       /* the dump was read to its end record */
	bool has_trailing;   /* there are bytes behind it */
	uint64_t read_count; /* samples, those left out by filters included */
	uint64_t bytes;
	char error[512]; /* not complete: file, offset, expected, got */
};

/* Adds what can be read of a dump to an open profile. */
void profile_add_dump(struct profile *profile, byte_input_reader read,
                      void *context, const char *file_name,
                      const struct load_options *options,
                      struct load_result *result);

/* Opens the profile and adds the dump; it is to be closed whatever happens. */
void profile_load(struct profile *profile, FILE *file, const char *file_name,
                  const struct load_options *options,
                  struct load_result *result);

#endif
