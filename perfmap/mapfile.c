// SPDX-License-Identifier: MIT
/*
 * Map file. Runs on the writer thread, and at start; never in the signal
 * handler.
 *
 * perf (6.1, 6.12) drops names under 3 bytes, and the last byte of a line that
 * does not end in a newline. So only whole lines are written, and a line that
 * a full disk tears is cut off again.
 */
#include "perfmap/mapfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "perfmap/own_file.h"

#define NAME_BYTES_MIN  3
#define ADDRESSES_BYTES 34 /* "ffffffffffffffff ffffffffffffffff " */
/* Room of a line beside its name, which may be padded. */
#define LINE_BYTES_MIN  (ADDRESSES_BYTES + NAME_BYTES_MIN + 1)

int mapfile_open(struct mapfile *map)
{
	int fd;

	map->failed = false;
	map->used = 0;
	/* The pid as this process sees it: perf enters its namespaces. */
	snprintf(map->path, sizeof(map->path), "/tmp/perf-%ld.map",
	         (long)getpid());
	map->fd = -1;
	fd = own_file_create(map->path);
	if (fd < 0)
		return fd;
	map->fd = fd;
	return 0;
}

/* Gives up for good, without half a line at the end of the file. */
static int fail(struct mapfile *map, size_t written, int error)
{
	off_t end = lseek(map->fd, 0, SEEK_CUR);
	size_t whole = written; /* bytes of whole lines */

	while (whole > 0 && map->buffer[whole - 1] != '\n')
		whole--;
	if (end >= 0)
		(void)!ftruncate(map->fd, end - (off_t)(written - whole));
	map->failed = true;
	map->used = 0;
	return -error;
}

int mapfile_flush(struct mapfile *map)
{
	size_t written = 0;

	if (map->fd < 0)
		return -EBADF;
	if (map->failed)
		return -EIO;
	while (written < map->used) {
		ssize_t got = write(map->fd, map->buffer + written,
		                    map->used - written);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return fail(map, written, got < 0 ? errno : EIO);
		written += (size_t)got;
	}
	map->used = 0;
	return 0;
}

static size_t write_name(char *to, const char *name, size_t name_bytes)
{
	for (size_t i = 0; i < name_bytes; i++) {
		unsigned char byte = (unsigned char)name[i];

		to[i] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
	}
	while (name_bytes < NAME_BYTES_MIN)
		to[name_bytes++] = '?';
	return name_bytes;
}

int mapfile_append(struct mapfile *map, uint64_t start, uint64_t bytes,
                   const char *name, size_t name_bytes)
{
	size_t name_room = sizeof(map->buffer) - LINE_BYTES_MIN;

	if (map->fd < 0)
		return -EBADF;
	if (map->failed)
		return -EIO;
	if (bytes == 0) /* perf would never match it */
		return -EINVAL;
	if (name_bytes > name_room)
		name_bytes = name_room;
	if (map->used + name_bytes + LINE_BYTES_MIN > sizeof(map->buffer)) {
		int error = mapfile_flush(map);

		if (error != 0)
			return error;
	}
	map->used +=
		(size_t)snprintf(map->buffer + map->used, ADDRESSES_BYTES + 1,
	                         "%" PRIx64 " %" PRIx64 " ", start, bytes);
	map->used += write_name(map->buffer + map->used, name, name_bytes);
	map->buffer[map->used++] = '\n';
	return 0;
}

int mapfile_close(struct mapfile *map)
{
	int error;

	if (map->fd < 0)
		return -EBADF;
	error = mapfile_flush(map);
	if (close(map->fd) != 0 && error == 0 && errno != EINTR)
		error = -errno;
	map->fd = -1;
	return error;
}
