// SPDX-License-Identifier: MIT
/*
 * Unwind tables: collects the loaded objects, decodes each once, publishes the
 * sorted set, and frees old ones when no handler can be using them. Runs on the
 * thread that starts a profile and on writer threads; not in the signal
 * handler: it allocates.
 */
#include "unwind_table.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eh_frame.h"
#include "elf_image.h"
#include "mappings.h"
#include "own_memory.h"
#include "../lmisclib.h"

/* More than any object has; a broken header may claim more. */
#define FRAMES_BYTES_MAX (UINT64_C(256) << 20)

/* A walk takes microseconds: who waits a little meets a moment without one. */
#define RECLAIM_LOOKS 8

static struct {
	pthread_mutex_t lock; /* guards what follows */
	uint64_t generation;  /* of the last set */
	uint64_t fingerprint; /* of the mappings that it is from */
	bool is_complete;     /* no object of it waits to be decoded */
	struct unwind_tables *retired;
} refresh = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A set under construction. */
struct collection {
	const struct unwind_tables *previous;
	struct unwind_tables *tables;
	struct elf_image *images; /* of tables->objects, in the same order */
	size_t capacity;
};

/* CPU time: on a busy machine, the time of others is none that we took. */
static uint64_t used_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/* ---- sets ----------------------------------------------------------------- */

static void free_tables(struct unwind_tables *tables)
{
	size_t i;

	for (i = 0; tables && i < tables->object_count; i++) {
		struct unwind_rows *rows = tables->objects[i].rows;

		if (rows && --rows->holder_count == 0)
			unwind_rows_free(rows);
	}
	free(tables);
}

/* Frees the sets that were replaced, if nobody can be using them. */
static void reclaim(void)
{
	struct unwind_tables *tables;
	int look = 0;

	while (refresh.retired && atomic_load(&unwind_tables_reader_count)) {
		if (++look == RECLAIM_LOOKS)
			return; /* the next refresh tries again */
		sched_yield();
	}
	while ((tables = refresh.retired)) {
		refresh.retired = tables->retired_next;
		free_tables(tables);
	}
}

static void publish(struct unwind_tables *tables)
{
	struct unwind_tables *previous;

	tables->generation = ++refresh.generation;
	previous = atomic_exchange(&unwind_tables_published, tables);
	if (!previous)
		return;
	previous->retired_next = refresh.retired;
	refresh.retired = previous;
}

static size_t rows_bytes(const struct unwind_rows *rows)
{
	return sizeof(*rows) +
	       rows->count *
	               (sizeof(*rows->ips) + sizeof(*rows->rule_numbers)) +
	       rows->rule_count * sizeof(*rows->rules);
}

static size_t set_bytes(const struct unwind_tables *tables)
{
	size_t i, bytes = 0;

	for (; tables; tables = tables->retired_next) {
		bytes += sizeof(*tables) +
		         tables->object_count * sizeof(tables->objects[0]);
		for (i = 0; i < tables->object_count; i++)
			if (tables->objects[i].rows)
				bytes += rows_bytes(tables->objects[i].rows) /
				         tables->objects[i].rows->holder_count;
	}
	return bytes;
}

size_t unwind_tables_held_bytes(void)
{
	size_t bytes;

	pthread_mutex_lock(&refresh.lock);
	bytes = set_bytes(atomic_load(&unwind_tables_published)) +
	        set_bytes(refresh.retired);
	pthread_mutex_unlock(&refresh.lock);
	return bytes;
}

/* ---- collecting ----------------------------------------------------------- */

static bool grow_collection(struct collection *collection)
{
	size_t capacity = collection->capacity ? 2 * collection->capacity : 32;
	struct unwind_tables *tables = realloc(
		collection->tables,
		sizeof(*tables) + capacity * sizeof(tables->objects[0]));
	struct elf_image *images;

	if (!tables)
		return false;
	if (!collection->tables)
		memset(tables, 0, sizeof(*tables));
	collection->tables = tables;
	images = realloc(collection->images, capacity * sizeof(*images));
	if (!images)
		return false;
	collection->images = images;
	collection->capacity = capacity;
	return true;
}

static bool is_same(const struct unwind_object *object,
                    const struct elf_image *image)
{
	return object->header == image->header &&
	       object->start == image->start && object->end == image->end &&
	       object->contents == image->contents;
}

/* What the previous set has of the same object is taken over. */
static void take_over(const struct unwind_tables *previous,
                      const struct elf_image *image,
                      struct unwind_object *object)
{
	size_t i;

	for (i = 0; previous && i < previous->object_count; i++) {
		if (!is_same(&previous->objects[i], image))
			continue;
		*object = previous->objects[i];
		if (object->rows)
			object->rows->holder_count++;
		return;
	}
}

/* Keeps the objects ascending; as a rule they come that way. */
static void insert_object(struct collection *collection,
                          const struct unwind_object *object,
                          const struct elf_image *image)
{
	struct unwind_tables *tables = collection->tables;
	size_t place = tables->object_count++;

	for (; place && tables->objects[place - 1].start > object->start;
	     place--) {
		tables->objects[place] = tables->objects[place - 1];
		collection->images[place] = collection->images[place - 1];
	}
	tables->objects[place] = *object;
	collection->images[place] = *image;
}

static bool add_image(struct collection *collection,
                      const struct elf_image *image)
{
	struct unwind_object object = {
		.start = image->start,
		.end = image->end,
		.header = image->header,
		.contents = image->contents,
	};

	if ((!collection->tables ||
	     collection->tables->object_count == collection->capacity) &&
	    !grow_collection(collection))
		return false;
	take_over(collection->previous, image, &object);
	insert_object(collection, &object, image);
	return true;
}

static bool collect(struct collection *collection,
                    const struct mappings *mappings)
{
	struct elf_image image;
	size_t i;

	for (i = 0; i < mappings->count; i++) {
		if (!elf_image_read(mappings, &mappings->list[i], &image))
			continue;
		/* Row addresses have 32 bits. */
		if (image.end - image.start <= UINT32_MAX &&
		    !add_image(collection, &image))
			return false;
	}
	return true;
}

/* ---- decoding ------------------------------------------------------------- */

/* NULL if the memory is gone or too much. */
static uint8_t *copy_memory(struct memory_copy *copy)
{
	uint8_t *bytes = NULL;

	if (copy->count && copy->count <= FRAMES_BYTES_MAX)
		bytes = malloc(copy->count);
	if (bytes && !own_memory_read(copy->address, bytes, copy->count)) {
		free(bytes);
		bytes = NULL;
	}
	copy->bytes = bytes;
	return bytes;
}

static uint8_t *copy_frames(const struct memory_copy *header,
                            struct memory_copy *frames)
{
	uint8_t head[4];
	uint64_t last;

	if (!eh_frame_locate(header, &frames->address, &last) ||
	    !own_memory_read(last, head, sizeof(head)))
		return NULL;
	frames->count = last - frames->address + eh_frame_entry_bytes(head);
	return copy_memory(frames);
}

/* False: out of memory. An object that cannot be decoded has no rows. */
static bool decode_object(struct unwind_object *object,
                          const struct elf_image *image)
{
	struct memory_copy header = {.address = image->frame_header,
	                             .count = image->frame_header_bytes};
	uint8_t *header_bytes = copy_memory(&header), *frames_bytes = NULL;
	struct memory_copy frames;
	bool out_of_memory = false;

	if (header_bytes)
		frames_bytes = copy_frames(&header, &frames);
	if (frames_bytes)
		object->rows = eh_frame_decode(&header, &frames, object->start,
		                               &out_of_memory);
	if (object->rows)
		object->rows->holder_count = 1;
	object->is_decoded = true;
	free(frames_bytes);
	free(header_bytes);
	return !out_of_memory;
}

static bool holds(const struct unwind_object *object, uint64_t address)
{
	return address >= object->start && address < object->end;
}

/* The object to decode next: the needed one, else the smallest, so that as many
 * as possible are ready early. The count of objects if there is none. */
static size_t next_object(const struct collection *collection, uint64_t needed)
{
	const struct unwind_tables *tables = collection->tables;
	size_t i, best = tables->object_count;

	for (i = 0; i < tables->object_count; i++) {
		if (tables->objects[i].is_decoded)
			continue;
		if (holds(&tables->objects[i], needed))
			return i;
		if (best == tables->object_count ||
		    collection->images[i].frame_header_bytes <
		            collection->images[best].frame_header_bytes)
			best = i;
	}
	return best;
}

/* 0, 1 if the time was up, -1: out of memory. */
static int decode_objects(struct collection *collection, uint64_t needed,
                          uint64_t budget_ns)
{
	struct unwind_tables *tables = collection->tables;
	uint64_t start_ns = used_ns();
	size_t i;

	while ((i = next_object(collection, needed)) < tables->object_count) {
		if (!holds(&tables->objects[i], needed) &&
		    used_ns() - start_ns >= budget_ns)
			return 1;
		if (!decode_object(&tables->objects[i], &collection->images[i]))
			return -1;
	}
	return 0;
}

/* ---- refreshing ----------------------------------------------------------- */

static int set_out_of_memory(struct error *error)
{
	return error_set(error, PROFILE_ERRMEM, ENOMEM,
	                 "out of memory for the unwind tables");
}

static int build(const struct mappings *mappings, uint64_t needed,
                 uint64_t budget_ns, struct error *error)
{
	struct collection collection = {
		.previous = atomic_load(&unwind_tables_published)};
	int result = -1;

	if (collect(&collection, mappings) && collection.tables)
		result = decode_objects(&collection, needed, budget_ns);
	free(collection.images);
	if (result < 0) {
		free_tables(collection.tables);
		return set_out_of_memory(error);
	}
	publish(collection.tables);
	refresh.fingerprint = mappings->fingerprint;
	refresh.is_complete = result == 0;
	return result;
}

static bool is_known(const struct mappings *mappings)
{
	return atomic_load(&unwind_tables_published) && refresh.is_complete &&
	       refresh.fingerprint == mappings->fingerprint;
}

/* What was known before is still good, as where descriptors are short. */
static int set_unreadable(struct error *error)
{
	if (atomic_load(&unwind_tables_published))
		return 1;
	return error_set(error, PROFILE_ERRIO, errno,
	                 "/proc/self/maps, which tells what is loaded, cannot "
	                 "be read: %s",
	                 strerror(errno));
}

int unwind_tables_refresh(uint64_t needed, uint64_t budget_ns,
                          struct error *error)
{
	struct mappings mappings;
	int result = 0;

	if (mappings_read(&mappings))
		return set_unreadable(error);
	pthread_mutex_lock(&refresh.lock);
	if (!is_known(&mappings))
		result = build(&mappings, needed, budget_ns, error);
	reclaim();
	pthread_mutex_unlock(&refresh.lock);
	mappings_free(&mappings);
	return result;
}

void unwind_tables_after_fork(void)
{
	pthread_mutex_init(&refresh.lock, NULL);
	atomic_store(&unwind_tables_reader_count, 0);
}
