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

struct load_options {
	bool compat;         /* names and stacks as the old parser's */
	bool lines;          /* Lua frames by the line that runs */
	bool host_addresses; /* native frames and C functions as 0x… */
};

struct load_result {
	bool complete;     /* the dump was read to its end record */
	bool has_trailing; /* there are bytes behind it */
	char error[512];   /* not complete: file, offset, expected, got */
};

/* Always leaves a profile of what could be read; profile is to be closed. */
void profile_load(struct profile *profile, FILE *file, const char *file_name,
                  const struct load_options *options,
                  struct load_result *result);

#endif
