// SPDX-License-Identifier: MIT
/* Reader of perf.data; see perf_file.h. */
#include "perf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "PERFILE2"

static bool refuse(struct perf_file *file, const char *path, const char *reason)
{
	snprintf(file->error, sizeof(file->error), "%.150s: %s", path, reason);
	return false;
}

static bool map_file(struct perf_file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *bytes;

	if (fd < 0)
		return refuse(file, path, strerror(errno));
	if (fstat(fd, &status) != 0 ||
	    status.st_size < (off_t)sizeof(file->header)) {
		close(fd);
		return refuse(file, path, "is too short for a perf.data");
	}
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd,
	             0);
	close(fd);
	if (bytes == MAP_FAILED)
		return refuse(file, path, strerror(errno));
	file->bytes = bytes;
	file->byte_count = (size_t)status.st_size;
	return true;
}

static bool holds(const struct perf_file *file,
                  const struct perf_file_section *section)
{
	return section->offset <= file->byte_count &&
	       section->bytes <= file->byte_count - section->offset;
}

static bool read_attributes(struct perf_file *file)
{
	const struct perf_file_header *header = &file->header;
	uint64_t entry = header->attribute_bytes;
	uint64_t known = sizeof(struct perf_event_attr);

	if (entry < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_file_section) ||
	    entry > 4096)
		return false;
	file->attribute_count = header->attributes.bytes / entry;
	if (file->attribute_count == 0 ||
	    file->attribute_count > PERF_FILE_EVENTS_MAX)
		return false;
	if (known > entry - sizeof(struct perf_file_section))
		known = entry - sizeof(struct perf_file_section);
	for (size_t i = 0; i < file->attribute_count; i++) {
		const uint8_t *at =
			file->bytes + header->attributes.offset + i * entry;

		memcpy(&file->attributes[i], at, known);
		memcpy(&file->ids[i],
		       at + entry - sizeof(struct perf_file_section),
		       sizeof(struct perf_file_section));
		if (!holds(file, &file->ids[i]))
			return false;
	}
	return true;
}

bool perf_file_open(struct perf_file *file, const char *path)
{
	*file = (struct perf_file){0};
	if (!map_file(file, path))
		return false;
	memcpy(&file->header, file->bytes, sizeof(file->header));
	if (memcmp(file->header.magic, MAGIC, sizeof(file->header.magic)) != 0)
		return refuse(file, path,
		              "expected a perf.data of this byte order, got "
		              "something else");
	if (file->header.header_bytes != sizeof(file->header))
		return refuse(file, path,
		              "was written to a pipe; record it with "
		              "perf record -o FILE");
	if (file->header.data.bytes == 0)
		return refuse(file, path,
		              "has no records: perf record did not end, or it "
		              "recorded nothing");
	if (file->header.data.offset % 8 != 0 ||
	    !holds(file, &file->header.data) ||
	    !holds(file, &file->header.attributes) || !read_attributes(file))
		return refuse(file, path, "is damaged");
	file->next = file->header.data.offset;
	return true;
}

void perf_file_close(struct perf_file *file)
{
	if (file->bytes)
		munmap((void *)(uintptr_t)file->bytes, file->byte_count);
	file->bytes = NULL;
}

const struct perf_event_header *perf_file_next(struct perf_file *file)
{
	uint64_t end = file->header.data.offset + file->header.data.bytes;
	const struct perf_event_header *record;

	if (file->next + sizeof(*record) > end)
		return NULL;
	record = (const void *)(file->bytes + file->next);
	/* Records are multiples of 8 bytes. */
	if (record->size < sizeof(*record) || record->size % 8 != 0 ||
	    record->size > end - file->next)
		return NULL;
	file->next += record->size;
	return record;
}

void perf_file_rewind(struct perf_file *file)
{
	file->next = file->header.data.offset;
}

size_t perf_file_event(const struct perf_file *file, uint64_t id)
{
	for (size_t i = 0; i < file->attribute_count; i++)
		for (uint64_t at = 0; at + 8 <= file->ids[i].bytes; at += 8)
			if (memcmp(file->bytes + file->ids[i].offset + at, &id,
			           sizeof(id)) == 0)
				return i;
	return 0;
}

bool perf_file_is_monotonic(const struct perf_file *file)
{
	for (size_t i = 0; i < file->attribute_count; i++)
		if (!file->attributes[i].use_clockid ||
		    file->attributes[i].clockid != CLOCK_MONOTONIC)
			return false;
	return true;
}
