// SPDX-License-Identifier: MIT
/*
 * Reading with somebody looking on: a line of progress on a terminal, and the
 * view of a profile that is still being written.
 */
#ifndef TOOLS_LIVE_H
#define TOOLS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A load_options.progress; the context is a struct progress. */
struct progress {
	uint64_t start_ns; /* 0: not started yet */
	uint64_t told_ns;
	uint64_t total_bytes; /* 0: not known */
	bool on_terminal;     /* nothing is told otherwise */
	bool shown;
};

void progress_open(struct progress *progress, int file);
void progress_tell(void *progress, uint64_t bytes);
/* Removes the line. */
void progress_close(struct progress *progress);

/* Reads a file that grows, until stopped is set: a byte_input_reader whose
 * context is a struct follower. */
struct follower {
	int file;
	uint64_t interval_ns;
	uint64_t shown_ns; /* when the view was last shown */
	void (*show)(void *context);
	void *context; /* of show */
};

size_t follower_read(void *follower, void *bytes, size_t count);

#endif
