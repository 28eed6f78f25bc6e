// SPDX-License-Identifier: MIT
/*
 * Names for perf. Runs on the writer thread, and at start; in a child of a fork
 * on the VM's thread. Never in the signal handler.
 *
 * A map file has no time: of two lines for one address perf shows either. Code
 * that is gone keeps its line until new code comes to the same memory, for the
 * samples that were taken in it; then its lines are taken out.
 */
#include "perf_names.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lmisclib.h"
#include "stream/frame_name.h"
#include "../perfmap/jitdump.h"
#include "../perfmap/mapfile.h"

#define DWARF_FRAME_POINTER 6 /* x86-64 */

_Static_assert(PERF_NAMES_ROOM_BYTES == JITDUMP_ROOM_BYTES, "one is the other");

/* Gone code whose lines are kept at most. */
#define GONE_MAX 65536

/* One piece of machine code that the map file names. */
struct code_range {
	uint64_t start;
	uint64_t bytes;
	uint64_t identity; /* of what it is, as a hash */
	uint64_t owner;    /* as in its record */
	bool gone;
};

struct perf_names {
	pthread_mutex_t queue_lock; /* guards the queue, held for a moment */
	struct code_record *first;
	struct code_record **last;

	pthread_mutex_t lock; /* guards all the rest */
	enum perf_names_kind kind;
	enum perf_names_unwind unwind;
	bool orphan; /* the files are a parent's */
	bool alone;  /* there is no writer thread in this process */
	struct mapfile map;
	bool dump_open;
	bool dump_failed;
	struct jitdump dump;
	char directory[JITDUMP_PATH_BYTES];
	struct code_range *ranges; /* ascending */
	size_t range_count;
	size_t range_capacity;
	size_t gone_count;
};

enum perf_names_kind perf_names_find_kind(const char *name)
{
	static const char *const kinds[] = {
		[PERF_NAMES_MAP] = "map",
		[PERF_NAMES_LINES] = "lines",
		[PERF_NAMES_JITDUMP] = "jitdump",
	};

	for (int kind = PERF_NAMES_MAP; kind <= PERF_NAMES_JITDUMP; kind++)
		if (strcmp(name, kinds[kind]) == 0)
			return (enum perf_names_kind)kind;
	return PERF_NAMES_OFF;
}

int perf_names_find_unwind(const char *name)
{
	static const char *const rules[] = {
		[PERF_NAMES_UNWIND_MAPPED] = "mapped",
		[PERF_NAMES_UNWIND_FILE] = "file",
		[PERF_NAMES_UNWIND_OFF] = "off",
	};

	for (int i = 0; i <= PERF_NAMES_UNWIND_OFF; i++)
		if (strcmp(name, rules[i]) == 0)
			return i;
	return -1;
}

/* ---- opening -------------------------------------------------------------- */

static int refuse_map(const struct mapfile *map, int code, struct error *error)
{
	return error_set(error, PROFILE_ERRIO, -code, "%s: %s", map->path,
	                 strerror(-code));
}

static int refuse_dump(const struct jitdump *dump, int code,
                       struct error *error)
{
	if (code == -EPERM)
		return error_set(
			error, PROFILE_ERRIO, -code,
			"%s: the file system is mounted noexec, and perf finds "
			"a jitdump by an executable mapping; choose another "
			"directory with perf_dir (luajit-sysprof record: "
			"--perf-dir)",
			dump->path);
	return error_set(error, PROFILE_ERRIO, -code, "%s: %s", dump->path,
	                 strerror(-code));
}

static int open_dump(struct perf_names *names, const char *directory,
                     struct error *error)
{
	int code;

	snprintf(names->directory, sizeof(names->directory), "%s",
	         directory ? directory : JITDUMP_DIRECTORY_DEFAULT);
	code = jitdump_open(&names->dump, names->directory);
	names->dump_open = code == 0;
	names->dump_failed = false;
	return code == 0 ? 0 : refuse_dump(&names->dump, code, error);
}

static struct perf_names *new_names(struct error *error)
{
	struct perf_names *names = calloc(1, sizeof(*names));

	if (!names) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the names for perf");
		return NULL;
	}
	pthread_mutex_init(&names->queue_lock, NULL);
	pthread_mutex_init(&names->lock, NULL);
	names->last = &names->first;
	names->map.fd = -1;
	return names;
}

static void inherit(struct perf_names *names);

static int open_files(struct perf_names *names, const char *directory,
                      struct error *error)
{
	bool new_map = names->map.fd < 0;
	int code;

	if (new_map) {
		code = mapfile_open(&names->map);
		if (code < 0)
			return refuse_map(&names->map, code, error);
	}
	if (names->kind != PERF_NAMES_JITDUMP || names->dump_open ||
	    open_dump(names, directory, error) == 0)
		return 0;
	if (new_map) {
		mapfile_close(&names->map);
		unlink(names->map.path);
	}
	return -1;
}

/* Of the process. The arena of addresses is not here: it is the session's. */
static struct perf_names *process_names;

struct perf_names *perf_names_open(const struct perf_names_options *options,
                                   struct error *error)
{
	struct perf_names *names = process_names;
	int code;

	if (!names) {
		names = new_names(error);
		if (!names)
			return NULL;
		process_names = names;
	}
	pthread_mutex_lock(&names->lock);
	inherit(names);
	names->alone = false;
	names->kind = options->kind;
	names->unwind = options->unwind;
	code = open_files(names, options->directory, error);
	pthread_mutex_unlock(&names->lock);
	return code == 0 ? names : NULL;
}

bool perf_names_want_room(const struct perf_names *names)
{
	return names->kind == PERF_NAMES_JITDUMP &&
	       names->unwind == PERF_NAMES_UNWIND_MAPPED;
}

/* ---- ranges of code ------------------------------------------------------- */

/* Index of the first range that ends behind the address. */
static size_t find_range(const struct perf_names *names, uint64_t address)
{
	size_t low = 0, high = names->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct code_range *range = &names->ranges[middle];

		if (range->start + range->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Takes out what is gone within an area, and all that overlaps the new code
 * (which is gone too, though nobody has said so). */
static void remove_lines(struct perf_names *names,
                         const struct code_record *record)
{
	bool all = names->gone_count > GONE_MAX;
	struct mapfile_range *removed =
		calloc(names->range_count, sizeof(*removed));
	size_t removed_count = 0, kept = 0;

	for (size_t i = 0; removed && i < names->range_count; i++) {
		struct code_range range = names->ranges[i];
		bool in_area = range.start < record->area_end &&
		               range.start + range.bytes > record->area_start;
		bool overlaps = range.start < record->address + record->bytes &&
		                range.start + range.bytes > record->address;

		if (overlaps || (range.gone && (in_area || all))) {
			removed[removed_count++] = (struct mapfile_range){
				range.start, range.bytes};
			names->gone_count -= range.gone;
		} else {
			names->ranges[kept++] = range;
		}
	}
	if (removed) {
		names->range_count = kept;
		mapfile_remove(&names->map, removed, removed_count);
	} else {
		names->map.failed = true; /* rather none than wrong ones */
	}
	free(removed);
}

/* False: out of memory. */
static bool insert_range(struct perf_names *names, size_t at,
                         const struct code_range *range)
{
	struct code_range *grown;
	size_t capacity = names->range_capacity;

	if (names->range_count == capacity) {
		capacity = capacity > 0 ? 2 * capacity : 256;
		grown = realloc(names->ranges, capacity * sizeof(*grown));
		if (!grown)
			return false;
		names->ranges = grown;
		names->range_capacity = capacity;
	}
	memmove(names->ranges + at + 1, names->ranges + at,
	        (names->range_count - at) * sizeof(*range));
	names->ranges[at] = *range;
	names->range_count++;
	return true;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

/* Not of the code bytes: exits are patched while a trace lives. */
static uint64_t identify(const struct code_record *record)
{
	uint64_t hash = mix(record->kind, record->trace_number);

	hash = mix(hash, record->address);
	hash = mix(hash, record->bytes);
	hash = mix(hash, record->start.line);
	for (size_t i = 0; i < record->start.chunk_bytes; i++)
		hash = mix(hash, (uint8_t)record->start.chunk[i]);
	return hash;
}

/* Makes room for a piece of code. False: it is there already. */
static bool claim_range(struct perf_names *names,
                        const struct code_record *record)
{
	struct code_range fresh = {
		.start = record->address,
		.bytes = record->bytes,
		.identity = identify(record),
		.owner = record->owner,
	};
	size_t at = find_range(names, record->address);

	if (at < names->range_count &&
	    names->ranges[at].start < record->address + record->bytes) {
		if (!names->ranges[at].gone &&
		    names->ranges[at].identity == fresh.identity)
			return false;
		remove_lines(names, record);
		at = find_range(names, record->address);
	}
	return insert_range(names, at, &fresh);
}

static void mark_gone(struct perf_names *names, uint64_t owner)
{
	for (size_t i = 0; i < names->range_count; i++) {
		struct code_range *range = &names->ranges[i];

		if (range->owner != owner || range->gone)
			continue;
		range->gone = true;
		names->gone_count++;
	}
}

/* ---- names of code -------------------------------------------------------- */

static size_t name_code(const struct code_record *record, char *name)
{
	const struct code_line *start = &record->start;

	if (record->kind == CODE_EXITS)
		return (size_t)snprintf(name, FRAME_NAME_BYTES,
		                        "[trace exits]");
	return frame_name_trace(name, record->trace_number, start->chunk,
	                        start->chunk_bytes, start->line);
}

static void map_line(struct perf_names *names, uint64_t start, uint64_t end,
                     const char *trace, const struct code_line *line)
{
	char name[2 * FRAME_NAME_BYTES];
	char place[FRAME_NAME_BYTES];
	int bytes;

	/* "TRACE_17 file.lua:30 in other.lua:5" */
	frame_name_source(place, line->chunk, line->chunk_bytes);
	bytes = snprintf(name, sizeof(name), "%s in %s:%u", trace, place,
	                 line->line);
	mapfile_append(&names->map, start, end - start, name, (size_t)bytes);
}

static void map_code(struct perf_names *names, const struct code_record *record,
                     const char *name, size_t name_bytes)
{
	uint64_t end = record->address + record->bytes;

	if (names->kind != PERF_NAMES_LINES || record->line_count == 0) {
		mapfile_append(&names->map, record->address, record->bytes,
		               name, name_bytes);
		return;
	}
	for (size_t i = 0; i < record->line_count; i++) {
		const struct code_line *line = &record->lines[i];
		uint64_t next =
			i + 1 < record->line_count ? line[1].address : end;

		map_line(names, line->address, next, name, line);
	}
}

/* Lines of the jitdump; *count of them, to be freed. */
static struct jitdump_line *dump_lines(const struct code_record *record,
                                       size_t *count)
{
	size_t line_bytes = record->line_count * sizeof(struct jitdump_line);
	struct jitdump_line *lines =
		malloc(line_bytes + record->line_count * FRAME_NAME_BYTES + 1);
	char *files = (char *)lines + line_bytes;

	*count = 0;
	for (size_t i = 0; lines && i < record->line_count; i++) {
		const struct code_line *line = &record->lines[i];
		char *file = files + i * FRAME_NAME_BYTES;

		if (line->line == 0 || line->chunk_bytes == 0)
			continue;
		frame_name_source(file, line->chunk, line->chunk_bytes);
		lines[(*count)++] =
			(struct jitdump_line){line->address, line->line, file};
	}
	return lines;
}

static void dump_code(struct perf_names *names,
                      const struct code_record *record, const char *name,
                      size_t name_bytes)
{
	static const struct jitdump_saved saved[] = {
		{DWARF_FRAME_POINTER, 2},
	};
	struct jitdump_code code = {
		.time_ns = record->time_ns,
		.thread_id = record->thread_id,
		.address = record->address,
		.bytes = record->bytes,
		.contents = record->contents,
		.name = name,
		.name_bytes = name_bytes,
		.frame = {record->has_room, record->frame_bytes, saved, 1},
	};
	struct jitdump_line *lines;

	if (!names->dump_open || names->kind != PERF_NAMES_JITDUMP)
		return;
	if (names->unwind == PERF_NAMES_UNWIND_OFF)
		code.frame = (struct jitdump_frame){0};
	if (names->unwind == PERF_NAMES_UNWIND_FILE)
		code.frame.has_room = false;
	/* What was there before the dump is there since then. */
	if (code.time_ns < names->dump.opened_ns)
		code.time_ns = names->dump.opened_ns;
	lines = dump_lines(record, &code.line_count);
	code.lines = lines;
	if (jitdump_append(&names->dump, &code) < 0)
		names->dump_failed = true;
	free(lines);
}

static void add_code(struct perf_names *names, const struct code_record *record)
{
	char name[FRAME_NAME_BYTES];
	size_t name_bytes;

	if (record->kind == CODE_FLUSH) {
		mark_gone(names, record->owner);
		return;
	}
	if (!claim_range(names, record))
		return;
	name_bytes = name_code(record, name);
	map_code(names, record, name, name_bytes);
	dump_code(names, record, name, name_bytes);
}

/* ---- the queue ------------------------------------------------------------ */

static struct code_record *take_all(struct perf_names *names)
{
	struct code_record *first;

	pthread_mutex_lock(&names->queue_lock);
	first = names->first;
	names->first = NULL;
	names->last = &names->first;
	pthread_mutex_unlock(&names->queue_lock);
	return first;
}

static void drain(struct perf_names *names)
{
	struct code_record *record = take_all(names);

	while (record) {
		struct code_record *next = record->next;

		add_code(names, record);
		free(record);
		record = next;
	}
}

void perf_names_drain(struct perf_names *names)
{
	pthread_mutex_lock(&names->lock);
	drain(names);
	pthread_mutex_unlock(&names->lock);
}

void perf_names_wake(struct perf_names *names)
{
	if (!names->alone || !names->orphan)
		return;
	pthread_mutex_lock(&names->lock);
	inherit(names);
	pthread_mutex_unlock(&names->lock);
}

void perf_names_push(struct perf_names *names, struct code_record *record)
{
	record->next = NULL;
	pthread_mutex_lock(&names->queue_lock);
	*names->last = record;
	names->last = &record->next;
	pthread_mutex_unlock(&names->queue_lock);
	if (!names->alone)
		return;
	pthread_mutex_lock(&names->lock);
	inherit(names);
	drain(names);
	mapfile_flush(&names->map);
	pthread_mutex_unlock(&names->lock);
}

/* ---- addresses that stand for something else ------------------------------ */

/* Instructions of one byte each, nops of a kind, that differ from range to
 * range: perf may take objects with the same code for one. */
static void fill_range(uint8_t *contents, uint64_t bytes, uint64_t address)
{
	for (uint64_t i = 0; i < bytes; i++)
		contents[i] =
			(uint8_t)(0x90 | (address >> (4 + 3 * (i % 14)) & 7));
}

static void dump_range(struct perf_names *names, struct jitdump_code *code,
                       const char *file, uint32_t first_line)
{
	size_t line_count = code->bytes - 1;
	struct jitdump_line *lines = calloc(line_count, sizeof(*lines));
	/* The whole range, whose last bytes stand for nothing. */
	uint64_t bytes = (code->bytes + 15) & ~UINT64_C(15);
	uint8_t *contents = malloc(bytes);

	if (lines && contents) {
		fill_range(contents, bytes, code->address);
		code->bytes = bytes;
		code->contents = contents;
		for (size_t i = 0; i < line_count; i++)
			lines[i] = (struct jitdump_line){
				code->address + (i > 0 ? i + 1 : 0),
				first_line + (uint32_t)i, file};
		code->lines = lines;
		code->line_count = line_count;
		if (jitdump_append(&names->dump, code) < 0)
			names->dump_failed = true;
	}
	free(contents);
	free(lines);
}

void perf_names_add_range(struct perf_names *names, uint64_t address,
                          uint64_t bytes, const char *name, size_t name_bytes,
                          const char *file, uint32_t first_line)
{
	struct jitdump_code code = {
		.thread_id = (uint32_t)getpid(),
		.address = address,
		.bytes = bytes,
		.name = name,
		.name_bytes = name_bytes,
	};

	pthread_mutex_lock(&names->lock);
	mapfile_append(&names->map, address, bytes, name, name_bytes);
	code.time_ns = names->dump.opened_ns;
	if (file && bytes > 1 && names->dump_open &&
	    names->kind == PERF_NAMES_JITDUMP)
		dump_range(names, &code, file, first_line);
	pthread_mutex_unlock(&names->lock);
}

void perf_names_flush(struct perf_names *names)
{
	pthread_mutex_lock(&names->lock);
	mapfile_flush(&names->map);
	pthread_mutex_unlock(&names->lock);
}

const char *perf_names_failed(struct perf_names *names)
{
	const char *path = NULL;

	pthread_mutex_lock(&names->lock);
	if (names->map.failed) {
		mapfile_close(&names->map);
		path = names->map.path;
	} else if (names->dump_open && names->dump_failed) {
		jitdump_close(&names->dump);
		names->dump_open = false;
		path = names->dump.path;
	}
	pthread_mutex_unlock(&names->lock);
	return path;
}

/* ---- fork ----------------------------------------------------------------- */

/* In a child: its own files, with what the parent's said when it was forked. */
static void inherit(struct perf_names *names)
{
	if (!names->orphan)
		return;
	names->orphan = false;
	if (names->map.fd >= 0)
		mapfile_inherit(&names->map);
	if (names->dump_open &&
	    jitdump_inherit(&names->dump, names->directory) < 0)
		names->dump_failed = true;
}

void perf_names_before_fork(struct perf_names *names)
{
	pthread_mutex_lock(&names->lock);
	drain(names);
	mapfile_flush(&names->map);
	pthread_mutex_lock(&names->queue_lock);
}

void perf_names_in_parent(struct perf_names *names)
{
	pthread_mutex_unlock(&names->queue_lock);
	pthread_mutex_unlock(&names->lock);
}

void perf_names_in_child(struct perf_names *names)
{
	pthread_mutex_init(&names->queue_lock, NULL);
	pthread_mutex_init(&names->lock, NULL);
	names->alone = true;
	names->orphan = names->map.fd >= 0 || names->dump_open;
}
