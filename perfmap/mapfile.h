// SPDX-License-Identifier: MIT
/*
 * Map file: /tmp/perf-<pid>.map, by which perf names addresses that are in no
 * object file. One line an address range: start, size, name.
 * Runs on the writer thread (and at start), never in the signal handler.
 */
#ifndef PERFMAP_MAPFILE_H
#define PERFMAP_MAPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapfile {
	int fd;
	bool failed;       /* a write failed: nothing more is written */
	size_t written;    /* bytes of whole lines in the file */
	size_t used;       /* bytes waiting in buffer */
	char path[64];     /* "/tmp/perf-<pid>.map" */
	char buffer[8192]; /* whole lines, written in one go */
};

/* Creates the file for this process: regular, ours, mode 0644, close-on-exec,
 * never through a link; replaces what a dead process with our pid left behind.
 * Returns 0 or a negative errno. */
int mapfile_open(struct mapfile *map);

/* Adds one line. The name is made safe (doc/internals.md): control bytes and
 * whatever viewers trip over are escaped. */
int mapfile_append(struct mapfile *map, uint64_t start, uint64_t bytes,
                   const char *name, size_t name_bytes);
int mapfile_flush(struct mapfile *map);

struct mapfile_range {
	uint64_t start;
	uint64_t bytes;
};

/*
 * Takes out the lines whose range overlaps one of these, which ascend: perf
 * does not repair overlaps, it shows either name. The file is written anew
 * beside the old one and renamed, so that readers see one or the other.
 */
int mapfile_remove(struct mapfile *map, const struct mapfile_range *ranges,
                   size_t count);

/* In the child of a fork: lets go of the parent's file and creates the child's,
 * with the same lines; perf asks it about what the child inherited. */
int mapfile_inherit(struct mapfile *map);

/* Flushes; the file stays, since perf reads it when the report runs. */
int mapfile_close(struct mapfile *map);

#endif
