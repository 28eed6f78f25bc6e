// SPDX-License-Identifier: MIT
/*
 * Dumps for tests, made by our own encoder: in memory, or as a file for the
 * scripts (tests/write_small_dump.c).
 */
#ifndef TESTS_DUMP_FIXTURE_H
#define TESTS_DUMP_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

#include "stream/sysprof_write.h"

/* Bytes that an encoder wrote. */
struct memory_dump {
	uint8_t *bytes;
	size_t count;
	size_t capacity;
	size_t flush_count; /* calls of the flusher */
};

/* A byte_output_flusher; context is a struct memory_dump. */
size_t memory_dump_flush(const void **data, size_t bytes, void *context);
void memory_dump_free(struct memory_dump *dump);

/* The small dump: every record and item there is, through a buffer of
 * buffer_bytes (at most 4096). */
void small_dump_write(struct memory_dump *dump, size_t buffer_bytes);

/* What is in it. */
#define SMALL_DUMP_SAMPLES                                                     \
	7 /* each in another VM state, see small_dump_folded */
#define SMALL_DUMP_LOST 5

/* The folded output of the small dump, and with --lines. */
extern const char small_dump_folded[];
extern const char small_dump_folded_lines[];

/* A dump of two coroutines whose labels come and go, and what it is by label. */
void labelled_dump_write(struct memory_dump *dump);
extern const char labelled_dump_folded[];

/* A dump whose names try to break out of every output. */
void hostile_dump_write(struct memory_dump *dump);

/* A dump without the extension, of names that no format expects: a NUL, a
 * megabyte, bytes that are not UTF-8, what formats have as their own marks. */
void strange_names_write(struct memory_dump *dump);

#endif
