// SPDX-License-Identifier: MIT
/*
 * Symbolizer: names, lines and inlined functions of native code, from the files
 * that were mapped when the profile was taken: their symbol tables, separate
 * debug files (by build id or debug link) and compressed ones inside. A file
 * with another build id than the mapped one had is not used.
 */
#ifndef PROFILE_SYMBOLIZE_H
#define PROFILE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLIZE_FRAMES_MAX 32

struct symbolizer; /* symbolize.c */

struct symbolize_options {
	const char *sysroot; /* put before all paths; NULL: none */
	/* Told once for each file that cannot be used; may be NULL. */
	void (*notice)(const char *text);
};

/* Code that is mapped from now on, in place of what was there. */
struct code_mapping {
	uint64_t start, bytes;
	uint64_t file_offset;  /* of start in the file */
	uint64_t file_address; /* the same, as the file's symbols count */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: it has none */
	const char *path;
};

struct code_frame {
	const char *name; /* as in the file, mangled; NULL: not known */
	const char *file; /* of its source; NULL: not known */
	uint32_t line;    /* 0: not known */
};

struct symbolizer *symbolizer_open(const struct symbolize_options *options);
void symbolizer_close(struct symbolizer *symbolizer);

void symbolizer_add_mapping(struct symbolizer *symbolizer,
                            const struct code_mapping *mapping);

/* The function that holds the address; valid until the symbolizer is closed.
 * False if nothing is known of it. */
bool symbolizer_find(struct symbolizer *symbolizer, uint64_t address,
                     struct code_frame *function);

/* The same with the functions inlined at the address, outermost first; returns
 * how many, 0 if nothing is known. */
size_t symbolizer_find_inlined(struct symbolizer *symbolizer, uint64_t address,
                               struct code_frame frames[SYMBOLIZE_FRAMES_MAX]);

#endif
