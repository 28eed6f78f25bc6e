// SPDX-License-Identifier: MIT
/*
 * The file of a dump. Opened where the profile starts, so that a bad path is
 * told at once; emptied and written on the writer thread.
 */
#ifndef LIB_DUMP_FILE_H
#define LIB_DUMP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

struct dump_file {
	char *path;       /* our copy */
	int fd;           /* -1: closed */
	int failed_errno; /* of the first write that failed, 0: none */
	bool is_new;      /* was not there before; never if fd was given */
	dev_t device;     /* which file it is, by whatever name */
	ino_t inode;
	uint64_t written_bytes; /* so far */
	uint64_t begin_ns; /* of a rotation: CLOCK_REALTIME, as in its name */
};

/* Creates the file if need be, but leaves what is in it alone. fd is the
 * caller's descriptor of it; 0: there is none. */
int dump_file_open(struct dump_file *file, const char *path, int fd,
                   struct error *error);
/* The same with a descriptor of a file that the caller has just made, which is given
 * away in any case. */
int dump_file_adopt(struct dump_file *file, const char *path, int fd,
                    struct error *error);
/* Cuts off what was in it; pipes and devices have nothing to cut off. */
void dump_file_empty(struct dump_file *file);
/* A byte_output_flusher; context is the struct dump_file. Fails with EBADF if the
 * host has closed the descriptor and the file is not at its place either. */
size_t dump_file_write(const void **data, size_t bytes, void *context);

/* As error_set(): the system has refused path with this errno. */
int dump_file_refuse(const char *path, int code, struct error *error);

bool dump_file_is_same(const struct dump_file *a, const struct dump_file *b);

/* -1 if closing or an earlier write failed. The path stays for messages. */
int dump_file_close(struct dump_file *file, struct error *error);
void dump_file_free(struct dump_file *file);
/* Removes that file: somebody may have moved it away, and another one to its place. */
void dump_file_unlink(const char *path, dev_t device, ino_t inode);
/* Of a profile that was refused, or a dump that holds nothing: removes the file if it
 * is new and still at its place. */
void dump_file_remove(const struct dump_file *file);
/* Both. */
void dump_file_discard(struct dump_file *file);

/* In the child of a fork: closes it, and leaves the rest alone, which another
 * thread may have been changing. */
void dump_file_abandon(const struct dump_file *file);

#endif
