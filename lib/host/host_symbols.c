// SPDX-License-Identifier: MIT
/*
 * Host symbols: from an address to the object that is mapped there, and to the
 * function within it. Runs on the writer thread; reads /proc/self/maps and the
 * object files, and never the dynamic loader's lists.
 *
 * A file that was replaced since it was loaded (an upgrade under a running
 * server) has the right path and the wrong symbols. So a file counts only if it
 * is the mapped one by device and inode, or, since overlay file systems show
 * other numbers in either place, if its first page is the one in memory.
 */
#include "host_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kernel_symbols.h"
#include "mappings.h"
#include "object_symbols.h"
#include "own_memory.h"
#include "unwind_table.h"
#include "../lmisclib.h"

/* Symbols of all objects together; an object that does not fit has none. */
#define SYMBOLS_BYTES_MAX ((size_t)256 << 20)

/* An unloaded library may be followed by another one at the same place: what
 * was read about mappings is believed for so long. */
#define MAPPINGS_AGE_MAX_NS 1000000000u

#define HEADER_PAGE_BYTES 4096
/* Leaves room for what tells one nameless function from another. */
#define OBJECT_NAME_BYTES_MAX (HOST_SYMBOL_NAME_BYTES - 32)
#define VDSO_BYTES_MAX        (1u << 20)

/* What tells one object from another. */
struct object_key {
	uint64_t device; /* makedev(3) */
	uint64_t inode;  /* 0: the vDSO */
	uint64_t header; /* address of its first page; 0: not mapped */
};

struct object {
	struct object_key key;
	uint64_t start, end; /* one of its executable mappings */
	bool is_read;        /* symbols was tried */
	bool is_mapped;      /* seen by the last reading of the mappings */
	struct object_symbols *symbols; /* NULL: none could be read */
	struct object *next;
	char path[]; /* of the file, "[vdso]" */
};

/* An executable mapping. */
struct code_mapping {
	uint64_t start, end;
	uint64_t file_offset;
	struct object *object; /* NULL: of no file */
};

struct code_list {
	size_t count;
	struct code_mapping *mappings; /* ascending */
};

struct host_symbols {
	struct code_list list;
	struct object *objects;
	struct kernel_symbols kernel;
	uint64_t read_ns; /* when the mappings were read; 0: never */
	size_t held_bytes;
};

/* --- mappings ------------------------------------------------------------ */

static bool is_same_object(const struct object_key *a,
                           const struct object_key *b)
{
	return a->device == b->device && a->inode == b->inode &&
	       a->header == b->header;
}

static struct object *find_or_add_object(struct host_symbols *symbols,
                                         const struct mapping *line,
                                         uint64_t header)
{
	struct object_key key = {line->device, line->inode, header};
	size_t path_bytes = strlen(line->path) + 1;
	struct object *object = symbols->objects;

	while (object && !is_same_object(&object->key, &key))
		object = object->next;
	if (!object) {
		object = calloc(1, sizeof(*object) + path_bytes);
		if (!object)
			return NULL;
		memcpy(object->path, line->path, path_bytes);
		object->key = key;
		object->next = symbols->objects;
		symbols->objects = object;
	}
	object->start = line->start;
	object->end = line->end;
	object->is_mapped = true;
	return object;
}

/* The header that the object's first page has, if this line is of the same. */
static uint64_t header_of(const struct mapping *first,
                          const struct mapping *line)
{
	/* The parts of an object lie behind each other. */
	return first && first->device == line->device &&
	                       first->inode == line->inode
	               ? first->start
	               : 0;
}

static bool list_code(struct host_symbols *symbols,
                      const struct mappings *mappings, struct code_list *list)
{
	const struct mapping *first = NULL; /* the last first page seen */
	size_t i;

	list->mappings =
		malloc((mappings->count + 1) * sizeof(*list->mappings));
	if (!list->mappings)
		return false;
	for (i = 0; i < mappings->count; i++) {
		const struct mapping *line = &mappings->list[i];
		struct object *object = NULL;

		if (line->file_offset == 0 && mapping_is_object(line))
			first = line;
		if (!line->is_executable)
			continue;
		if (mapping_is_object(line))
			object = find_or_add_object(symbols, line,
			                            header_of(first, line));
		list->mappings[list->count++] = (struct code_mapping){
			line->start, line->end, line->file_offset, object};
	}
	return true;
}

static void free_object(struct host_symbols *symbols, struct object *object)
{
	if (object->symbols)
		symbols->held_bytes -=
			object_symbols_held_bytes(object->symbols);
	object_symbols_free(object->symbols);
	free(object);
}

static void free_unmapped_objects(struct host_symbols *symbols)
{
	struct object **link = &symbols->objects;

	while (*link) {
		struct object *object = *link;

		if (object->is_mapped) {
			link = &object->next;
			continue;
		}
		*link = object->next;
		free_object(symbols, object);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* On failure what was known before stays. */
static bool read_mappings(struct host_symbols *symbols)
{
	struct code_list list = {0};
	struct mappings mappings;
	bool complete;

	symbols->read_ns = now_ns();
	if (mappings_read(&mappings))
		return false;
	for (struct object *object = symbols->objects; object;
	     object = object->next)
		object->is_mapped = false;
	complete = list_code(symbols, &mappings, &list);
	mappings_free(&mappings);
	if (!complete)
		return false;
	free(symbols->list.mappings);
	symbols->list = list;
	free_unmapped_objects(symbols);
	return true;
}

static const struct code_mapping *search_mappings(const struct code_list *list,
                                                  uint64_t address)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == list->count || list->mappings[low].start > address)
		return NULL;
	return &list->mappings[low];
}

static const struct code_mapping *find_mapping(struct host_symbols *symbols,
                                               uint64_t address)
{
	const struct code_mapping *mapping = NULL;

	if (now_ns() - symbols->read_ns <= MAPPINGS_AGE_MAX_NS)
		mapping = search_mappings(&symbols->list, address);
	if (mapping)
		return mapping;
	read_mappings(symbols);
	return search_mappings(&symbols->list, address);
}

/* --- objects ------------------------------------------------------------- */

static bool has_mapped_header(int fd, const struct object *object)
{
	char file[HEADER_PAGE_BYTES], memory[HEADER_PAGE_BYTES];

	return object->key.header != 0 &&
	       pread(fd, file, sizeof(file), 0) == (ssize_t)sizeof(file) &&
	       own_memory_read(object->key.header, memory, sizeof(memory)) &&
	       !memcmp(file, memory, sizeof(file));
}

static bool is_mapped_file(int fd, const struct object *object)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	return (status.st_dev == object->key.device &&
	        status.st_ino == object->key.inode) ||
	       has_mapped_header(fd, object);
}

static int open_if_mapped(const char *path, const struct object *object)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0 && is_mapped_file(fd, object))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Deleted files are still reachable: the program's by a link that everybody
 * may follow, others by links that need CAP_CHECKPOINT_RESTORE. */
static int open_object(const struct object *object)
{
	char link[64];
	int fd = open_if_mapped(object->path, object);

	if (fd < 0)
		fd = open_if_mapped("/proc/self/exe", object);
	if (fd < 0) {
		snprintf(link, sizeof(link),
		         "/proc/self/map_files/%" PRIx64 "-%" PRIx64,
		         object->start, object->end);
		fd = open_if_mapped(link, object);
	}
	return fd;
}

static struct object_symbols *read_vdso(const struct object *object,
                                        size_t bytes_max)
{
	size_t bytes = object->end - object->start;
	struct object_symbols *symbols = NULL;
	void *image;

	if (bytes > VDSO_BYTES_MAX || !(image = malloc(bytes)))
		return NULL;
	if (own_memory_read(object->start, image, bytes))
		symbols = object_symbols_read_image(image, bytes, bytes_max);
	free(image);
	return symbols;
}

static void read_object(struct host_symbols *symbols, struct object *object)
{
	size_t bytes_max = SYMBOLS_BYTES_MAX - symbols->held_bytes;
	int fd;

	object->is_read = true;
	if (object->key.inode == 0) {
		object->symbols = read_vdso(object, bytes_max);
	} else if ((fd = open_object(object)) >= 0) {
		object->symbols = object_symbols_read(fd, bytes_max);
		close(fd);
	}
	if (object->symbols)
		symbols->held_bytes +=
			object_symbols_held_bytes(object->symbols);
}

/* --- names --------------------------------------------------------------- */

/* "/lib/libm.so.6" is libm; "/usr/bin/luajit" is luajit. */
static int object_name(const struct object *object, const char **name)
{
	const char *slash = strrchr(object->path, '/');
	const char *suffix;

	if (object->key.inode == 0) {
		*name = "vdso";
		return 4;
	}
	*name = slash ? slash + 1 : object->path;
	for (suffix = *name; (suffix = strstr(suffix, ".so")); suffix++)
		if (suffix != *name && (suffix[3] == '\0' || suffix[3] == '.'))
			return (int)(suffix - *name);
	return (int)strlen(*name);
}

static void set_unknown(struct host_symbol *symbol, uint64_t address)
{
	symbol->start = address;
	symbol->end = address + 1;
	snprintf(symbol->name, sizeof(symbol->name), "[unknown]");
}

/* Where a signal handler returns to: the C library's symbol for it is local. */
#define TRAMPOLINE_NAME "__restore_rt"

/* offset: where the address lies in the object. */
static void set_nameless(struct host_symbol *symbol, uint64_t address,
                         const struct object *object, uint64_t offset)
{
	const char *name;
	int length = object_name(object, &name);

	if (length > OBJECT_NAME_BYTES_MAX)
		length = OBJECT_NAME_BYTES_MAX;
	set_unknown(symbol, address);
	if (unwind_is_trampoline(address))
		snprintf(symbol->name, sizeof(symbol->name), TRAMPOLINE_NAME);
	else if (unwind_find_function(address, &symbol->start, &symbol->end))
		snprintf(symbol->name, sizeof(symbol->name), "%.*s+0x%" PRIx64,
		         length, name, offset - (address - symbol->start));
	else
		snprintf(symbol->name, sizeof(symbol->name), "[%.*s]", length,
		         name);
}

void host_symbols_find(struct host_symbols *symbols, uint64_t address,
                       struct host_symbol *symbol)
{
	const struct code_mapping *mapping;
	struct object_symbol found;
	struct object *object;
	uint64_t offset;

	if (is_kernel_address(address)) {
		kernel_symbols_find(&symbols->kernel, address, symbol);
		return;
	}
	mapping = find_mapping(symbols, address);
	if (!mapping || !mapping->object) {
		set_unknown(symbol, address);
		return;
	}
	object = mapping->object;
	if (!object->is_read)
		read_object(symbols, object);
	offset = address - mapping->start + mapping->file_offset;
	if (object->symbols)
		object_symbols_address(object->symbols, offset, &offset);
	if (!object->symbols ||
	    !object_symbols_find(object->symbols, offset, &found)) {
		set_nameless(symbol, address, object, offset);
		return;
	}
	symbol->start = address - (offset - found.start);
	symbol->end = symbol->start + (found.end - found.start);
	snprintf(symbol->name, sizeof(symbol->name), "%s", found.name);
}

struct host_symbols *host_symbols_open(struct error *error)
{
	struct host_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "out of memory for the names of native functions");
		return NULL;
	}
	return symbols;
}

void host_symbols_close(struct host_symbols *symbols)
{
	if (!symbols)
		return;
	while (symbols->objects) {
		struct object *object = symbols->objects;

		symbols->objects = object->next;
		free_object(symbols, object);
	}
	kernel_symbols_free(&symbols->kernel);
	free(symbols->list.mappings);
	free(symbols);
}

size_t host_symbols_held_bytes(const struct host_symbols *symbols)
{
	return symbols->held_bytes +
	       kernel_symbols_held_bytes(&symbols->kernel) +
	       symbols->list.count * sizeof(*symbols->list.mappings);
}
