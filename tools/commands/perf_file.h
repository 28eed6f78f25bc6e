// SPDX-License-Identifier: MIT
/*
 * Reader of the perf.data that perf record writes to a file: attributes, and
 * the records one by one. The file is mapped; nothing of it is believed before
 * it was looked at. Files of pipes are refused.
 */
#ifndef COMMANDS_PERF_FILE_H
#define COMMANDS_PERF_FILE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_FILE_EVENTS_MAX 64

struct perf_file_section {
	uint64_t offset;
	uint64_t bytes;
};

struct perf_file_header {
	char magic[8];
	uint64_t header_bytes;
	uint64_t attribute_bytes;
	struct perf_file_section attributes;
	struct perf_file_section data;
	struct perf_file_section event_types;
	uint64_t features[4];
};

struct perf_file {
	const uint8_t *bytes;
	size_t byte_count;
	struct perf_file_header header;
	/* The attributes; fields that the file lacks are 0. */
	struct perf_event_attr attributes[PERF_FILE_EVENTS_MAX];
	struct perf_file_section ids[PERF_FILE_EVENTS_MAX];
	size_t attribute_count;
	uint64_t next; /* offset of the next record */
	char error[256];
};

/* False with the reason in file->error. To be closed in any case. */
bool perf_file_open(struct perf_file *file, const char *path);
void perf_file_close(struct perf_file *file);

/* The next record, which is whole; NULL at the end. */
const struct perf_event_header *perf_file_next(struct perf_file *file);

/* To the first record again. */
void perf_file_rewind(struct perf_file *file);

/* Index of the attribute that has this id, 0 if none does. */
size_t perf_file_event(const struct perf_file *file, uint64_t id);

/* Was it recorded with perf record -k mono? */
bool perf_file_is_monotonic(const struct perf_file *file);

#endif
