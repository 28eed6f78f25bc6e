// SPDX-License-Identifier: MIT
/*
 * Mappings of this process, from /proc/self/maps: which objects are loaded, and
 * where. The dynamic loader knows, too, but its lock may be held by a thread
 * that waits for ours. Not for the signal handler: it reads and allocates.
 */
#ifndef HOST_MAPPINGS_H
#define HOST_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line. */
struct mapping {
	uint64_t start, end;
	uint64_t file_offset;
	uint64_t device; /* makedev(3) */
	uint64_t inode;  /* 0: no file */
	bool is_executable;
	bool is_deleted; /* the file has lost this path */
	char *path;      /* of the file, or as "[vdso]"; "" if none */
};

/* Those of files, the vDSO, and whatever else is executable. */
struct mappings {
	size_t count;
	struct mapping *list; /* ascending */
	char *text;           /* holds the paths */
	uint64_t fingerprint; /* of the objects' code: equal means that
	                       * nothing was loaded or unloaded */
};

#define MAPPINGS_VDSO "[vdso]"

/* Takes one line apart, in place; without its newline. False if it is none. */
bool mapping_parse(char *line, struct mapping *mapping);

/* Is it of a file, or the vDSO? */
bool mapping_is_object(const struct mapping *mapping);

/* 0, or -1 with errno set. */
int mappings_read(struct mappings *mappings);
void mappings_free(struct mappings *mappings);

/* NULL if there is none of the list. */
const struct mapping *mappings_find(const struct mappings *mappings,
                                    uint64_t address);

#endif
