// SPDX-License-Identifier: MIT
/*
 * Unwind tables: collects the loaded objects, decodes each once, publishes
 * the sorted set. Not for the signal handler: it allocates.
 */
#include "unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "eh_frame.h"
#include "../lmisclib.h"

static pthread_mutex_t refresh_lock = PTHREAD_MUTEX_INITIALIZER;
/* The loader's counters at the last refresh: equal means nothing changed. */
static unsigned long long loader_adds, loader_subs;

struct collection {
	const struct unwind_tables *previous;
	struct unwind_tables *tables;
	size_t capacity;
	unsigned long long adds, subs;
	int failed; /* -2: out of memory */
};

static void copy_name(struct unwind_object *object, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	if (length >= sizeof(object->name)) {
		name += length - (sizeof(object->name) - 1);
		length = sizeof(object->name) - 1;
	}
	memcpy(object->name, name ? name : "", length);
	object->name[length] = '\0';
}

static struct unwind_object *append_object(struct collection *collection)
{
	struct unwind_tables *tables = collection->tables;

	if (!tables || tables->object_count == collection->capacity) {
		size_t capacity =
			collection->capacity ? collection->capacity * 2 : 32;

		tables = realloc(tables,
		                 sizeof(*tables) +
		                         capacity * sizeof(*tables->objects));
		if (!tables)
			return NULL;
		if (!collection->tables)
			tables->object_count = 0;
		collection->tables = tables;
		collection->capacity = capacity;
	}
	return memset(&tables->objects[tables->object_count++], 0,
	              sizeof(*tables->objects));
}

/* The same object in the previous set: its rows are taken over. */
static const struct unwind_object *
find_previous(const struct collection *collection,
              const struct unwind_object *object)
{
	size_t i;

	if (!collection->previous)
		return NULL;
	for (i = 0; i < collection->previous->object_count; i++) {
		const struct unwind_object *previous =
			&collection->previous->objects[i];

		if (previous->start == object->start &&
		    previous->end == object->end &&
		    previous->load_address == object->load_address &&
		    previous->frame_header == object->frame_header &&
		    !strcmp(previous->name, object->name))
			return previous;
	}
	return NULL;
}

static int decode_object(struct unwind_object *object, size_t header_bytes)
{
	struct unwind_rows rows = {NULL, 0, 0};
	struct unwind_row *fitted;

	if (eh_frame_decode(object->frame_header, header_bytes, object->start,
	                    &rows) == -2) {
		free(rows.rows);
		return -2;
	}
	fitted = realloc(rows.rows, rows.count * sizeof(*rows.rows) + 1);
	if (fitted)
		rows.rows = fitted;
	object->rows = rows.rows;
	object->row_count = rows.count;
	return 0;
}

static int collect_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct collection *collection = data;
	struct unwind_object found = {.start = UINT64_MAX};
	const struct unwind_object *previous;
	struct unwind_object *object;
	size_t header_bytes = 0;
	int i;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) +
	                    sizeof(info->dlpi_subs)) {
		collection->adds = info->dlpi_adds;
		collection->subs = info->dlpi_subs;
	}
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X)) {
			if (start < found.start)
				found.start = start;
			if (start + segment->p_memsz > found.end)
				found.end = start + segment->p_memsz;
		} else if (segment->p_type == PT_GNU_EH_FRAME) {
			found.frame_header = (const void *)start;
			header_bytes = segment->p_memsz;
		}
	}
	/* Row addresses have 32 bits. */
	if (!found.frame_header || found.start >= found.end ||
	    found.end - found.start > UINT32_MAX)
		return 0;
	found.load_address = info->dlpi_addr;
	copy_name(&found, info->dlpi_name);
	object = append_object(collection);
	if (!object) {
		collection->failed = -2;
		return 1;
	}
	*object = found;
	previous = find_previous(collection, object);
	if (previous) {
		object->rows = previous->rows;
		object->row_count = previous->row_count;
		return 0;
	}
	collection->failed = decode_object(object, header_bytes);
	return collection->failed;
}

static int compare_objects(const void *left, const void *right)
{
	const struct unwind_object *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static bool holds_rows(const struct unwind_tables *tables,
                       const struct unwind_row *rows)
{
	size_t i;

	for (i = 0; i < tables->object_count; i++)
		if (tables->objects[i].rows == rows)
			return true;
	return false;
}

/* Frees a set, but not the rows that kept also holds. */
static void free_tables(struct unwind_tables *tables,
                        const struct unwind_tables *kept)
{
	size_t i;

	if (!tables)
		return;
	for (i = 0; i < tables->object_count; i++)
		if (!kept || !holds_rows(kept, tables->objects[i].rows))
			free(tables->objects[i].rows);
	free(tables);
}

static int refresh_locked(struct error *error)
{
	struct unwind_tables *previous = atomic_load(&unwind_tables_published);
	struct collection collection = {.previous = previous};

	dl_iterate_phdr(collect_object, &collection);
	if (collection.failed) {
		free_tables(collection.tables, previous);
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "out of memory for the unwind tables");
	}
	if (!collection.tables)
		return error_set(error, PROFILE_ERRUSE, ENOTSUP,
		                 "no loaded object has an .eh_frame_hdr: the "
		                 "stack cannot be unwound");
	qsort(collection.tables->objects, collection.tables->object_count,
	      sizeof(collection.tables->objects[0]), compare_objects);
	atomic_store(&unwind_tables_published, collection.tables);
	free_tables(previous, collection.tables);
	loader_adds = collection.adds;
	loader_subs = collection.subs;
	return 0;
}

static int read_loader_counters(struct dl_phdr_info *info, size_t size,
                                void *data)
{
	bool *changed = data;

	if (size >=
	    offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		*changed = info->dlpi_adds != loader_adds ||
		           info->dlpi_subs != loader_subs;
	return 1;
}

int unwind_tables_refresh(struct error *error)
{
	bool changed = true;
	int result = 0;

	pthread_mutex_lock(&refresh_lock);
	if (atomic_load(&unwind_tables_published))
		dl_iterate_phdr(read_loader_counters, &changed);
	if (changed)
		result = refresh_locked(error);
	pthread_mutex_unlock(&refresh_lock);
	return result;
}
