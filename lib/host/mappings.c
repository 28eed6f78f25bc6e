// SPDX-License-Identifier: MIT
/*
 * Mappings of this process. Runs on any thread; never in the signal handler.
 */
#include "mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DELETED_SUFFIX   " (deleted)"
#define TEXT_BYTES_FIRST (64u << 10)

/* A number up to the character that ends it; that is skipped, too. */
static bool take_number(char **at, int base, char end, uint64_t *number)
{
	char *rest;

	*number = strtoull(*at, &rest, base);
	if (rest == *at || *rest != end)
		return false;
	*at = rest + 1;
	return true;
}

static void cut_deleted(struct mapping *mapping)
{
	size_t length = strlen(mapping->path);
	size_t suffix = strlen(DELETED_SUFFIX);

	if (length < suffix ||
	    strcmp(mapping->path + length - suffix, DELETED_SUFFIX) != 0)
		return;
	mapping->path[length - suffix] = '\0';
	mapping->is_deleted = true;
}

bool mapping_parse(char *line, struct mapping *mapping)
{
	uint64_t device_major, device_minor;
	char *rest;

	*mapping = (struct mapping){0};
	if (!take_number(&line, 16, '-', &mapping->start) ||
	    !take_number(&line, 16, ' ', &mapping->end) || strlen(line) < 5)
		return false;
	mapping->is_executable = line[2] == 'x';
	line += 5; /* "r-xp " */
	if (!take_number(&line, 16, ' ', &mapping->file_offset) ||
	    !take_number(&line, 16, ':', &device_major) ||
	    !take_number(&line, 16, ' ', &device_minor))
		return false;
	mapping->inode = strtoull(line, &rest, 10);
	if (rest == line)
		return false;
	mapping->device =
		makedev((unsigned int)device_major, (unsigned int)device_minor);
	mapping->path = rest + strspn(rest, " ");
	cut_deleted(mapping);
	return true;
}

bool mapping_is_object(const struct mapping *mapping)
{
	return mapping->inode || !strcmp(mapping->path, MAPPINGS_VDSO);
}

/* The file has no size: it is read until it ends. NULL: errno tells. */
static char *read_all(int fd)
{
	size_t capacity = TEXT_BYTES_FIRST, used = 0;
	char *text = malloc(capacity), *grown;
	ssize_t got;

	if (!text)
		return NULL;
	while ((got = read(fd, text + used, capacity - used - 1)) > 0) {
		used += (size_t)got;
		if (capacity - used > TEXT_BYTES_FIRST / 2)
			continue;
		grown = realloc(text, 2 * capacity);
		if (!grown)
			break;
		text = grown;
		capacity *= 2;
	}
	text[used] = '\0';
	if (got == 0)
		return text;
	free(text);
	return NULL;
}

static char *read_text(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char *text;

	if (fd < 0)
		return NULL;
	text = read_all(fd);
	close(fd);
	return text;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static void add_to_fingerprint(struct mappings *mappings,
                               const struct mapping *mapping)
{
	uint64_t hash = mappings->fingerprint;

	hash = mix(hash, mapping->start);
	hash = mix(hash, mapping->end);
	hash = mix(hash, mapping->file_offset);
	hash = mix(hash, mapping->device);
	mappings->fingerprint = mix(hash, mapping->inode);
}

static bool append(struct mappings *mappings, size_t *capacity,
                   const struct mapping *mapping)
{
	struct mapping *grown;

	if (mappings->count == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 256;
		grown = realloc(mappings->list, *capacity * sizeof(*grown));
		if (!grown)
			return false;
		mappings->list = grown;
	}
	mappings->list[mappings->count++] = *mapping;
	if (mapping->is_executable && mapping_is_object(mapping))
		add_to_fingerprint(mappings, mapping);
	return true;
}

int mappings_read(struct mappings *mappings)
{
	struct mapping mapping;
	size_t capacity = 0;
	char *line, *rest;

	*mappings = (struct mappings){.text = read_text()};
	if (!mappings->text)
		return -1;
	for (rest = mappings->text; (line = strsep(&rest, "\n"));) {
		if (!mapping_parse(line, &mapping) ||
		    (!mapping_is_object(&mapping) && !mapping.is_executable))
			continue;
		if (!append(mappings, &capacity, &mapping)) {
			mappings_free(mappings);
			errno = ENOMEM;
			return -1;
		}
	}
	return 0;
}

void mappings_free(struct mappings *mappings)
{
	free(mappings->list);
	free(mappings->text);
	*mappings = (struct mappings){0};
}

const struct mapping *mappings_find(const struct mappings *mappings,
                                    uint64_t address)
{
	size_t low = 0, high = mappings->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (mappings->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == mappings->count || mappings->list[low].start > address)
		return NULL;
	return &mappings->list[low];
}
