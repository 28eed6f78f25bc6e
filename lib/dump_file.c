// SPDX-License-Identifier: MIT
/* The file of a dump; see dump_file.h. Not for signal handlers. */
#include "dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lmisclib.h"

int dump_file_refuse(const char *path, int code, struct error *error)
{
	return error_set(error, PROFILE_ERRIO, code, "%.300s: %s%s", path,
	                 strerror(code),
	                 code == EDQUOT
	                         ? ": the quota of its owner is used up; "
	                           "remove files, raise the quota (quota(1) "
	                           "shows it), or choose a path on another disk"
	                         : "");
}

/* A name that is there, a link to no file included, is no new one. */
static int open_path(struct dump_file *file, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	file->is_new = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd;
}

/* Takes the descriptor over, in any case. */
static int take_file(struct dump_file *file, const char *path, int fd,
                     struct error *error)
{
	struct stat status;
	int code = errno;

	/* At once, for dump_file_abandon(). */
	file->fd = fd;
	if (fd >= 0 && fstat(fd, &status) == 0) {
		file->device = status.st_dev;
		file->inode = status.st_ino;
		file->path = strdup(path);
		if (file->path)
			return 0;
		dump_file_free(file);
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the path of the dump");
	}
	if (fd >= 0) {
		code = errno;
		close(fd);
	}
	file->fd = -1;
	return dump_file_refuse(path, code, error);
}

int dump_file_open(struct dump_file *file, const char *path, int fd,
                   struct error *error)
{
	*file = (struct dump_file){.fd = -1};
	fd = fd > 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : open_path(file, path);
	return take_file(file, path, fd, error);
}

int dump_file_adopt(struct dump_file *file, const char *path, int fd,
                    struct error *error)
{
	*file = (struct dump_file){.fd = -1, .is_new = true};
	return take_file(file, path, fd, error);
}

void dump_file_empty(struct dump_file *file)
{
	if (ftruncate(file->fd, 0) < 0)
		errno = 0;
}

/* A file may be a pipe or a terminal that was made non-blocking. */
static ssize_t write_some(int fd, const uint8_t *bytes, size_t count)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	ssize_t written;

	for (;;) {
		written = write(fd, bytes, count);
		if (written >= 0)
			return written;
		if (errno == EAGAIN)
			poll(&ready, 1, -1);
		else if (errno != EINTR)
			return -1;
	}
}

static bool is_our_file(const struct dump_file *file, int fd)
{
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 &&
	       status.st_dev == file->device && status.st_ino == file->inode;
}

/* Daemons close all descriptors, and the number may be that of a file of the host
 * by now: not a byte may get there. The dump itself may still be at its place. */
static bool find_file(struct dump_file *file)
{
	if (is_our_file(file, file->fd))
		return true;
	file->fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (is_our_file(file, file->fd))
		return true;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
	return false;
}

size_t dump_file_write(const void **data, size_t bytes, void *context)
{
	struct dump_file *file = context;
	size_t done = 0;

	if (!find_file(file)) {
		file->failed_errno = EBADF;
		*data = NULL;
		return 0;
	}
	while (done < bytes) {
		ssize_t written = write_some(
			file->fd, (const uint8_t *)*data + done, bytes - done);

		if (written <= 0) {
			file->failed_errno = written < 0 ? errno : ENOSPC;
			*data = NULL;
			break;
		}
		done += (size_t)written;
		file->written_bytes += (uint64_t)written;
	}
	return done;
}

bool dump_file_is_same(const struct dump_file *a, const struct dump_file *b)
{
	return a->device == b->device && a->inode == b->inode;
}

int dump_file_close(struct dump_file *file, struct error *error)
{
	int fd = is_our_file(file, file->fd) ? file->fd : -1;
	int code = file->failed_errno;

	file->fd = -1;
	/* Linux closes the descriptor in any case: EINTR is no failure. */
	if (fd >= 0 && close(fd) < 0 && errno != EINTR && code == 0)
		code = errno;
	if (code == 0)
		return 0;
	return dump_file_refuse(file->path, code, error);
}

void dump_file_free(struct dump_file *file)
{
	if (is_our_file(file, file->fd))
		close(file->fd);
	free(file->path);
	file->fd = -1;
	file->path = NULL;
}

void dump_file_unlink(const char *path, dev_t device, ino_t inode)
{
	struct stat status;

	if (lstat(path, &status) == 0 && status.st_dev == device &&
	    status.st_ino == inode)
		unlink(path);
}

void dump_file_remove(const struct dump_file *file)
{
	if (file->is_new)
		dump_file_unlink(file->path, file->device, file->inode);
}

void dump_file_discard(struct dump_file *file)
{
	dump_file_remove(file);
	dump_file_free(file);
}

void dump_file_abandon(const struct dump_file *file)
{
	if (is_our_file(file, file->fd))
		close(file->fd);
}
