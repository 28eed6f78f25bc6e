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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfmap/own_file.h"

#define NAME_BYTES_MIN  3
#define ADDRESSES_BYTES 34 /* "ffffffffffffffff ffffffffffffffff " */
/* Room of a line beside its name, which may be padded. */
#define LINE_BYTES_MIN (ADDRESSES_BYTES + NAME_BYTES_MIN + 1)

/* Of this process. */
static int create_file(struct mapfile *map)
{
	int fd;

	map->failed = false;
	map->written = 0;
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

int mapfile_open(struct mapfile *map)
{
	map->used = 0;
	return create_file(map);
}

/* Gives up for good, without half a line at the end of the file. */
static int fail(struct mapfile *map, int error)
{
	(void)!ftruncate(map->fd, (off_t)map->written);
	map->failed = true;
	map->used = 0;
	return -error;
}

/* 0 or a negative errno. Lines that were written whole are counted. */
static int write_lines(int fd, const char *lines, size_t bytes, size_t *whole)
{
	size_t done = 0;
	int error = 0;

	while (done < bytes && error == 0) {
		ssize_t got = write(fd, lines + done, bytes - done);

		if (got > 0)
			done += (size_t)got;
		else if (got == 0 || errno != EINTR)
			error = got < 0 ? errno : EIO;
	}
	while (done > 0 && lines[done - 1] != '\n')
		done--;
	*whole += done;
	return -error;
}

int mapfile_flush(struct mapfile *map)
{
	int error;

	if (map->fd < 0)
		return -EBADF;
	if (map->failed)
		return -EIO;
	error = write_lines(map->fd, map->buffer, map->used, &map->written);
	if (error != 0)
		return fail(map, -error);
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

/* ---- taking lines out, and copying them ----------------------------------- */

/* The file's lines, to be freed; NULL with *error set. */
static char *read_lines(int fd, size_t bytes, int *error)
{
	char *lines = malloc(bytes + 1);
	size_t done = 0;

	*error = lines ? 0 : -ENOMEM;
	while (lines && done < bytes) {
		ssize_t got =
			pread(fd, lines + done, bytes - done, (off_t)done);

		if (got > 0) {
			done += (size_t)got;
		} else if (got == 0 || errno != EINTR) {
			*error = got < 0 ? -errno : -EIO;
			free(lines);
			return NULL;
		}
	}
	if (lines)
		lines[bytes] = '\0';
	return lines;
}

static bool overlaps(const struct mapfile_range *ranges, size_t count,
                     uint64_t start, uint64_t bytes)
{
	size_t low = 0;
	size_t high = count;

	/* The first one that ends behind start. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].start + ranges[middle].bytes <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && ranges[low].start < start + bytes;
}

/* Moves the lines that stay to the front; returns their bytes. */
static size_t filter(char *lines, size_t bytes,
                     const struct mapfile_range *ranges, size_t count)
{
	size_t kept = 0;

	for (size_t at = 0; at < bytes;) {
		char *end = memchr(lines + at, '\n', bytes - at);
		size_t length = (size_t)(end - (lines + at)) + 1;
		uint64_t start = strtoull(lines + at, &end, 16);
		uint64_t size = strtoull(end, NULL, 16);

		if (!overlaps(ranges, count, start, size)) {
			memmove(lines + kept, lines + at, length);
			kept += length;
		}
		at += length;
	}
	return kept;
}

/* A file beside the old one takes its place. */
static int replace_file(struct mapfile *map, const char *lines, size_t bytes)
{
	char path[sizeof(map->path) + 8];
	size_t written = 0;
	int fd, error;

	snprintf(path, sizeof(path), "%s.new", map->path);
	fd = own_file_create(path);
	if (fd < 0)
		return fd;
	error = write_lines(fd, lines, bytes, &written);
	if (error == 0 && rename(path, map->path) != 0)
		error = -errno;
	if (error != 0) {
		unlink(path);
		close(fd);
		return error;
	}
	close(map->fd);
	map->fd = fd;
	map->written = written;
	return 0;
}

int mapfile_remove(struct mapfile *map, const struct mapfile_range *ranges,
                   size_t count)
{
	int error = mapfile_flush(map);
	char *lines;

	if (error != 0 || count == 0)
		return error;
	lines = read_lines(map->fd, map->written, &error);
	if (lines)
		error = replace_file(
			map, lines, filter(lines, map->written, ranges, count));
	free(lines);
	/* Rather no more names than wrong ones. */
	if (error != 0)
		return fail(map, -error);
	return 0;
}

int mapfile_inherit(struct mapfile *map)
{
	int parent_fd = map->fd;
	size_t bytes = map->written;
	bool failed = map->failed;
	char *lines;
	int error;

	if (parent_fd < 0)
		return -EBADF;
	error = create_file(map);
	lines = error == 0 ? read_lines(parent_fd, bytes, &error) : NULL;
	if (lines)
		error = write_lines(map->fd, lines, bytes, &map->written);
	free(lines);
	close(parent_fd);
	if (error != 0 && map->fd >= 0)
		return fail(map, -error);
	map->failed = failed;
	return error;
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
