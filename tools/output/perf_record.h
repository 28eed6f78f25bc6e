// SPDX-License-Identifier: MIT
/* One record of a perf.data under construction. Zero it before its first use. */
#ifndef OUTPUT_PERF_RECORD_H
#define OUTPUT_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct perf_record {
	struct perf_event_header header;
	uint8_t *body;
	size_t used;
	size_t capacity;
};

/* Code of a file. */
struct perf_mapping {
	uint32_t pid;
	bool is_kernel; /* pid does not matter */
	uint64_t start;
	uint64_t bytes;
	uint64_t file_offset;
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: not known */
	const char *path;
};

void perf_record_begin(struct perf_record *record, uint32_t type,
                       unsigned misc);
void perf_record_put(struct perf_record *record, const void *bytes,
                     size_t count);
void perf_record_put_u32(struct perf_record *record, uint32_t number);
void perf_record_put_u64(struct perf_record *record, uint64_t number);
/* Padded with zeros to a multiple of 8. */
void perf_record_put_string(struct perf_record *record, const char *string);
/* A whole PERF_RECORD_MMAP2, but for what identifies its sample. */
void perf_record_put_mapping(struct perf_record *record,
                             const struct perf_mapping *mapping);
/* Returns the bytes written. */
size_t perf_record_end(struct perf_record *record, FILE *file);
void perf_record_free(struct perf_record *record);

#endif
