// SPDX-License-Identifier: MIT
/*
 * Addresses for frames, and the objects that name them; see perf_objects.h.
 *
 * Functions have no addresses that another machine knows. They get some of
 * their own, a byte a line. perf finds the objects by path, or by build id when
 * `perf buildid-cache --add` took them.
 */
#include "perf_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/memory.h"
#include "stream/frame_name.h"

#define FUNCTION_ALIGN 16
#define PATH_BYTES     4096

/* Far from where programs are, from the profiler's own addresses in a process
 * (perfmap/arena.c), and from each other. */
static const struct {
	const char *suffix;
	uint64_t address;
} shapes[PERF_OBJECT_COUNT] = {
	[PERF_OBJECT_LUA] = {".lua", UINT64_C(0x220000000000)},
	[PERF_OBJECT_NATIVE] = {".native", UINT64_C(0x230000000000)},
	/* Where Linux has modules on x86-64: behind its own code, which perf
	 * takes for that of the machine that it runs on. */
	[PERF_OBJECT_KERNEL] = {".kernel", UINT64_C(0xffffffffc0000000)},
};

/* ---- addresses --------------------------------------------------------- */

/* A function to which an address is to be given: a frame, or a name that no
 * frame has. */
struct place {
	const char *name;
	const char *file;
	uint32_t line;
	enum perf_object object;
	uint64_t *address; /* where it goes to */
};

static enum perf_object object_of(const struct profile_frame *frame)
{
	if (frame->flags & PROFILE_FLAG_KERNEL)
		return PERF_OBJECT_KERNEL;
	return frame->kind == FRAME_HOST || frame->kind == FRAME_C
	               ? PERF_OBJECT_NATIVE
	               : PERF_OBJECT_LUA;
}

static int compare_places(const void *left, const void *right)
{
	const struct place *a = left, *b = right;
	int names = strcmp(a->name, b->name);

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (names != 0)
		return names;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

/* VM states and the empty stack; their names stay. */
static size_t add_other_places(struct perf_objects *objects,
                               struct place *places)
{
	static char names[STATE_COUNT][32];
	size_t count = 0;

	places[count++] = (struct place){.name = "[no stack]",
	                                 .file = "",
	                                 .address = &objects->no_stack};
	for (int i = 0; objects->has_states && i < STATE_COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "[%s]",
		         sample_state_name((uint64_t)i));
		places[count++] =
			(struct place){.name = names[i],
		                       .file = "",
		                       .address = &objects->states[i]};
	}
	return count;
}

static struct place *make_places(struct perf_objects *objects, size_t *count)
{
	const struct profile *profile = objects->profile;
	struct place *places = memory_zeroed(
		profile->frame_count + STATE_COUNT + 1, sizeof(*places));

	*count = add_other_places(objects, places);
	for (size_t i = 1; i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->address != 0) {
			objects->addresses[i] = frame->address;
			continue;
		}
		places[(*count)++] = (struct place){
			.name = frame->name,
			.file = frame->file,
			.line = frame->line > 0 ? frame->line
		                                : frame->first_line,
			.object = object_of(frame),
			.address = &objects->addresses[i],
		};
	}
	qsort(places, *count, sizeof(*places), compare_places);
	return places;
}

/* ---- companions -------------------------------------------------------- */

/* Gives out the addresses of one object, whose places these are; fills symbols
 * and lines, one a place at most. */
static void lay_out(struct companion *companion,
                    struct companion_symbol *symbols,
                    struct companion_line *lines, const struct place *places,
                    size_t count)
{
	uint64_t at = 0;

	for (size_t i = 0; i < count; i++) {
		const struct place *place = &places[i];
		bool same = i > 0 && strcmp(place->name, place[-1].name) == 0;

		if (same && place->file == place[-1].file &&
		    place->line == place[-1].line) {
			*place->address = *place[-1].address;
			continue;
		}
		if (!same) {
			at = (at + FUNCTION_ALIGN - 1) &
			     ~(uint64_t)(FUNCTION_ALIGN - 1);
			symbols[companion->symbol_count++] =
				(struct companion_symbol){place->name, at, 0};
		}
		lines[companion->line_count++] = (struct companion_line){
			at, place->file,
			place->file[0] != '\0' ? place->line : 0};
		*place->address = shapes[place->object].address + at;
		at++;
		symbols[companion->symbol_count - 1].bytes =
			at - symbols[companion->symbol_count - 1].offset;
	}
	companion->code_bytes =
		(at + FUNCTION_ALIGN) & ~(uint64_t)(FUNCTION_ALIGN - 1);
}

static void object_path(char *path, const char *output, enum perf_object object)
{
	char *absolute = realpath(output, NULL);

	snprintf(path, PATH_BYTES, "%s%s", absolute ? absolute : output,
	         shapes[object].suffix);
	free(absolute);
}

static int write_companion(struct perf_objects *objects,
                           enum perf_object object, const struct place *places,
                           size_t count)
{
	struct companion_symbol *symbols =
		memory_zeroed(count + 1, sizeof(*symbols));
	struct companion_line *lines = memory_zeroed(count + 1, sizeof(*lines));
	struct companion companion = {.symbols = symbols, .lines = lines};
	char path[PATH_BYTES];
	int error;

	lay_out(&companion, symbols, lines, places, count);
	object_path(path, objects->output, object);
	objects->code_bytes[object] = companion.code_bytes;
	error = companion_write(&companion, path, objects->build_ids[object]);
	free(lines);
	free(symbols);
	return error;
}

static int write_companions(struct perf_objects *objects)
{
	size_t count, first = 0;
	struct place *places = make_places(objects, &count);
	int error = 0;

	for (int object = 0; object < PERF_OBJECT_COUNT && error == 0;
	     object++) {
		size_t end = first;

		while (end < count && (int)places[end].object == object)
			end++;
		if (objects->has_object[object])
			error = write_companion(objects,
			                        (enum perf_object)object,
			                        places + first, end - first);
		first = end;
	}
	free(places);
	return error;
}

int perf_objects_write(struct perf_objects *objects)
{
	objects->addresses = memory_zeroed(objects->profile->frame_count,
	                                   sizeof(*objects->addresses));
	return write_companions(objects);
}

void perf_objects_free(struct perf_objects *objects)
{
	free(objects->addresses);
	objects->addresses = NULL;
}

void perf_objects_put_mapping(const struct perf_objects *objects,
                              enum perf_object object,
                              struct perf_record *record, uint32_t pid)
{
	char path[PATH_BYTES];

	object_path(path, objects->output, object);
	perf_record_put_mapping(
		record, &(struct perf_mapping){
				.pid = pid,
				.is_kernel = object == PERF_OBJECT_KERNEL,
				.start = shapes[object].address,
				.bytes = objects->code_bytes[object],
				.file_offset = COMPANION_CODE_OFFSET,
				.build_id = objects->build_ids[object],
				.build_id_bytes = COMPANION_BUILD_ID_BYTES,
				.path = path,
			});
}
