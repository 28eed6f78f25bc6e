// SPDX-License-Identifier: MIT
/*
 * Rotation: the dumps of a profile that goes on for long. When is it time for the
 * next one, what is it called, and which of the old ones have to go? Ordinary
 * code on the writer thread, but for the options.
 */
#ifndef LIB_ROTATION_H
#define LIB_ROTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dump_file.h"
#include "rotation_files.h"

#define ROTATION_TOTAL_BYTES_DEFAULT (UINT64_C(1) << 30)
#define ROTATION_PERIOD_NS_MIN       UINT64_C(1000000000)
#define ROTATION_DUMP_BYTES_MIN      (UINT64_C(64) << 10)
#define ROTATION_TOTAL_BYTES_MIN     (UINT64_C(1) << 20)

/* Most dumps that are kept, however small they are. */
#define ROTATION_DUMPS_MAX 1000
/* ".PID.20261130T214501.123Z" and the end of a string. */
#define ROTATION_SUFFIX_BYTES 40

/* Zeroed: one dump takes it all. One of the first two is set else. */
struct rotation_options {
	uint64_t period_ns;   /* a new dump after so long */
	uint64_t dump_bytes;  /* a new dump after so many bytes, but not more
	                       * often than once a second */
	uint64_t total_bytes; /* of all dumps of the profile, the one that is
	                       * being written included */
	const struct rotation_files *files; /* NULL: this process */
};

/* A dump that has ended. */
struct rotated_dump {
	uint64_t begin_ns; /* CLOCK_REALTIME, as in its name */
	uint64_t bytes;
	dev_t device;
	ino_t inode;
};

/* Zeroed at first, then rotation_open(). */
struct rotation {
	struct rotation_options options;
	const char *path;    /* what the names begin with; outlives this */
	uint64_t due_ns;     /* by time, CLOCK_MONOTONIC */
	uint64_t retry_ns;   /* no attempt before, CLOCK_MONOTONIC */
	bool is_interrupted; /* no dump is under way: the last one failed */
	/* A ring of those that are kept. */
	struct rotated_dump dumps[ROTATION_DUMPS_MAX];
	size_t oldest, count;
	uint64_t kept_bytes;
};

/* "30s", "10min", "1h" or a number of seconds; "64K", "16M", "1G" for bytes. False
 * for anything else, and for what is too little. */
bool rotation_read_when(const char *text, struct rotation_options *options);
bool rotation_read_total(const char *text, struct rotation_options *options);

bool rotation_is_on(const struct rotation_options *options);

void rotation_open(struct rotation *rotation,
                   const struct rotation_options *options, const char *path);

/* Opens the file of the next dump, whose period begins now. -1 with the reason in
 * *error: nothing has changed, but that the next attempt is a second away. */
int rotation_next_file(struct rotation *rotation, struct dump_file *file,
                       struct error *error);

bool rotation_is_due(const struct rotation *rotation, uint64_t dump_bytes);

/* The dump under way could not be written: when the next one is due, but after some
 * seconds at most, it is tried again. */
void rotation_interrupt(struct rotation *rotation);

/* Keeps a dump that has ended. */
void rotation_keep(struct rotation *rotation, const struct dump_file *file);

/* Removes the oldest dumps while there are too many bytes. Returns how many. */
size_t rotation_trim(struct rotation *rotation, uint64_t dump_bytes);

#endif
