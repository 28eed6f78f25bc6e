// SPDX-License-Identifier: MIT
/*
 * Rotation files: who creates and removes the dumps of a rotation. The profiled
 * process itself, or, where `luajit-sysprof record -p` has attached to it, the
 * recorder, for which the agent (preload/agent.c) asks.
 */
#ifndef LIB_ROTATION_FILES_H
#define LIB_ROTATION_FILES_H

#include <sys/types.h>

/* Called on the writer thread, at first on the one that starts the profile. */
struct rotation_files {
	void *context; /* outlives the profile */
	/* Creates a file that is not there yet: its descriptor, or -errno. */
	int (*create)(void *context, const char *path);
	/* Unless another file than this one is at its place. */
	void (*remove)(void *context, const char *path, dev_t device,
	               ino_t inode);
};

#endif
