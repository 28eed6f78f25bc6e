// SPDX-License-Identifier: MIT
/*
 * Output formats of luajit-parse-sysprof. One file a format; a new one is a
 * function here and a row in the table of output.c.
 */
#ifndef OUTPUT_OUTPUT_H
#define OUTPUT_OUTPUT_H

#include <stdio.h>

#include "profile/profile.h"

/* What a format can, and what it needs of the profile. */
enum output_wants {
	OUTPUT_CAN_COMPARE = 1,      /* shows old and new samples */
	OUTPUT_HAS_ROWS = 2,         /* leaves small rows out by itself */
	OUTPUT_WANTS_LINES = 4,      /* frames by line, names without it */
	OUTPUT_WANTS_LABELS = 8,     /* tags with thread, VM and coroutine */
	OUTPUT_WANTS_MOMENTS = 16,   /* samples in time */
	OUTPUT_WANTS_ADDRESSES = 32, /* native frames where they are */
};

struct output_format {
	const char *name; /* as in --format=NAME */
	const char *help; /* one line */
	/* NULL: left out of this build. Writes to file; errors are left in it (ferror). title: what was
	 * profiled, such as the dump's file name. */
	void (*write)(FILE *file, const struct profile *profile,
	              const char *title);
	unsigned wants; /* enum output_wants */
	/* In place of write, for a format that puts more files beside
	 * profile->output_path: returns 0, or a negative errno for those. */
	int (*write_beside)(FILE *file, const struct profile *profile);
};

/* Ends with a row whose name is NULL. The first one is the default. */
extern const struct output_format output_formats[];

const struct output_format *output_find(const char *name); /* or NULL */

void output_folded(FILE *file, const struct profile *profile,
                   const char *title);
void output_compat(FILE *file, const struct profile *profile,
                   const char *title);
void output_top(FILE *file, const struct profile *profile, const char *title);
void output_html(FILE *file, const struct profile *profile, const char *title);
void output_speedscope(FILE *file, const struct profile *profile,
                       const char *title);
void output_firefox(FILE *file, const struct profile *profile,
                    const char *title);
void output_callgrind(FILE *file, const struct profile *profile,
                      const char *title);
void output_json(FILE *file, const struct profile *profile, const char *title);
/* Only in builds with protobuf-c and zlib (HAVE_PPROF). */
void output_pprof(FILE *file, const struct profile *profile, const char *title);
int output_perf(FILE *file, const struct profile *profile);
int output_perf_states(FILE *file, const struct profile *profile);
void output_svg(FILE *file, const struct profile *profile, const char *title);

#endif
