// SPDX-License-Identifier: MIT
/*
 * A perf.data, for perf report, perf script, perf diff and what reads those: the
 * merged stacks as samples of one event, in time. Needs neither perf nor any
 * right to write.
 *
 * Functions have no addresses that another machine knows. They get some of
 * their own, a byte a line, in two objects that lie beside the file (companion.h):
 * OUTPUT.lua with Lua and library functions, OUTPUT.native with the rest. perf
 * finds them by path, or by build id when `perf buildid-cache --add` took them.
 *
 * Numbers of the format are those of linux/perf_event.h and of perf's
 * Documentation/perf.data-file-format.txt; perf 6.1 and 6.12 open the result.
 */
#include "output.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "companion.h"
#include "profile/memory.h"
#include "stream/frame_name.h"

#define DATA_MAGIC       "PERFILE2"
#define ATTRIBUTE_BYTES  PERF_ATTR_SIZE_VER5 /* older perfs take it, too */
#define COMMAND_NAME     "luajit"
#define MISC_BUILD_ID    (1u << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID */
#define FUNCTION_ALIGN   16
#define INTERVAL_UNKNOWN 1
/* Far from where programs are, and from each other. */
#define LUA_ADDRESS    UINT64_C(0x200000000000)
#define NATIVE_ADDRESS UINT64_C(0x210000000000)
#define PATH_BYTES     4096

enum object_kind {
	OBJECT_LUA,
	OBJECT_NATIVE,
	OBJECT_COUNT
};

static const struct {
	const char *suffix;
	uint64_t address;
} objects[OBJECT_COUNT] = {
	[OBJECT_LUA] = {".lua", LUA_ADDRESS},
	[OBJECT_NATIVE] = {".native", NATIVE_ADDRESS},
};

struct section {
	uint64_t offset;
	uint64_t bytes;
};

struct data_header {
	char magic[8];
	uint64_t header_bytes;
	uint64_t attribute_bytes;
	struct section attributes;
	struct section data;
	struct section event_types;
	uint64_t features[4];
};

_Static_assert(sizeof(struct data_header) == 104, "perf's header");

/* One record of the data under construction. */
struct record {
	struct perf_event_header header;
	uint8_t *body;
	size_t used;
	size_t capacity;
};

struct writer {
	FILE *file;
	const struct profile *profile;
	bool has_states;     /* a leaf tells the VM state */
	uint64_t *addresses; /* by frame */
	uint64_t states[STATE_COUNT];
	uint64_t no_stack; /* of samples without any frame */
	uint8_t build_ids[OBJECT_COUNT][COMPANION_BUILD_ID_BYTES];
	uint64_t code_bytes[OBJECT_COUNT];
	struct record record;
	uint64_t *chain; /* leaf first */
	size_t chain_capacity;
	uint64_t data_bytes;
};

/* ---- addresses --------------------------------------------------------- */

/* A function to which an address is to be given: a frame, or a name that no
 * frame has. */
struct place {
	const char *name;
	const char *file;
	uint32_t line;
	enum object_kind object;
	uint64_t *address; /* where it goes to */
};

static enum object_kind object_of(const struct profile_frame *frame)
{
	return frame->kind == FRAME_HOST || frame->kind == FRAME_C
	               ? OBJECT_NATIVE
	               : OBJECT_LUA;
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
static size_t add_other_places(struct writer *writer, struct place *places)
{
	static char names[STATE_COUNT][32];
	size_t count = 0;

	places[count++] = (struct place){
		.name = "[no stack]", .file = "", .address = &writer->no_stack};
	for (int i = 0; writer->has_states && i < STATE_COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "[%s]",
		         sample_state_name((uint64_t)i));
		places[count++] = (struct place){.name = names[i],
		                                 .file = "",
		                                 .address = &writer->states[i]};
	}
	return count;
}

static struct place *make_places(struct writer *writer, size_t *count)
{
	const struct profile *profile = writer->profile;
	struct place *places = memory_zeroed(
		profile->frame_count + STATE_COUNT + 1, sizeof(*places));

	*count = add_other_places(writer, places);
	for (size_t i = 1; i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		places[(*count)++] = (struct place){
			.name = frame->name,
			.file = frame->file,
			.line = frame->line > 0 ? frame->line
		                                : frame->first_line,
			.object = object_of(frame),
			.address = &writer->addresses[i],
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
		*place->address = objects[place->object].address + at;
		at++;
		symbols[companion->symbol_count - 1].bytes =
			at - symbols[companion->symbol_count - 1].offset;
	}
	companion->code_bytes =
		(at + FUNCTION_ALIGN) & ~(uint64_t)(FUNCTION_ALIGN - 1);
}

static void object_path(char *path, const char *output, enum object_kind object)
{
	char *absolute = realpath(output, NULL);

	snprintf(path, PATH_BYTES, "%s%s", absolute ? absolute : output,
	         objects[object].suffix);
	free(absolute);
}

static int write_companion(struct writer *writer, enum object_kind object,
                           const struct place *places, size_t count)
{
	struct companion_symbol *symbols =
		memory_zeroed(count + 1, sizeof(*symbols));
	struct companion_line *lines = memory_zeroed(count + 1, sizeof(*lines));
	struct companion companion = {.symbols = symbols, .lines = lines};
	char path[PATH_BYTES];
	int error;

	lay_out(&companion, symbols, lines, places, count);
	object_path(path, writer->profile->output_path, object);
	writer->code_bytes[object] = companion.code_bytes;
	error = companion_write(&companion, path, writer->build_ids[object]);
	free(lines);
	free(symbols);
	return error;
}

static int write_companions(struct writer *writer)
{
	size_t count, first = 0;
	struct place *places = make_places(writer, &count);
	int error = 0;

	for (int object = 0; object < OBJECT_COUNT && error == 0; object++) {
		size_t end = first;

		while (end < count && (int)places[end].object == object)
			end++;
		error = write_companion(writer, (enum object_kind)object,
		                        places + first, end - first);
		first = end;
	}
	free(places);
	return error;
}

/* ---- records ----------------------------------------------------------- */

static void begin_record(struct writer *writer, uint32_t type, unsigned misc)
{
	writer->record.header = (struct perf_event_header){
		.type = type,
		.misc = (uint16_t)(PERF_RECORD_MISC_USER | misc),
	};
	writer->record.used = 0;
}

static void put(struct writer *writer, const void *bytes, size_t count)
{
	struct record *record = &writer->record;

	record->body = memory_grow(record->body, &record->capacity,
	                           record->used + count, 1);
	memcpy(record->body + record->used, bytes, count);
	record->used += count;
}

static void put_u32(struct writer *writer, uint32_t number)
{
	put(writer, &number, sizeof(number));
}

static void put_u64(struct writer *writer, uint64_t number)
{
	put(writer, &number, sizeof(number));
}

/* Padded with zeros to a multiple of 8. */
static void put_string(struct writer *writer, const char *string)
{
	static const char zeros[8];
	size_t bytes = strlen(string) + 1;

	put(writer, string, bytes);
	put(writer, zeros, (8 - bytes % 8) % 8);
}

static void end_record(struct writer *writer)
{
	struct record *record = &writer->record;

	record->header.size = (uint16_t)(sizeof(record->header) + record->used);
	fwrite(&record->header, sizeof(record->header), 1, writer->file);
	fwrite(record->body, 1, record->used, writer->file);
	writer->data_bytes += record->header.size;
}

/* Who a record is about. */
struct who {
	uint32_t pid;
	uint32_t thread_id;
	uint64_t time_ns;
};

static void put_who(struct writer *writer, const struct who *who)
{
	put_u32(writer, who->pid);
	put_u32(writer, who->thread_id);
	put_u64(writer, who->time_ns);
}

static void write_command(struct writer *writer, const struct who *who)
{
	begin_record(writer, PERF_RECORD_COMM, 0);
	put_u32(writer, who->pid);
	put_u32(writer, who->thread_id);
	put_string(writer, COMMAND_NAME);
	put_who(writer, who);
	end_record(writer);
}

static void write_mapping(struct writer *writer, const struct who *who,
                          enum object_kind object)
{
	static const uint8_t build_id_head[4] = {COMPANION_BUILD_ID_BYTES};
	char path[PATH_BYTES];

	object_path(path, writer->profile->output_path, object);
	begin_record(writer, PERF_RECORD_MMAP2, MISC_BUILD_ID);
	put_u32(writer, who->pid);
	put_u32(writer, who->thread_id);
	put_u64(writer, objects[object].address);
	put_u64(writer, writer->code_bytes[object]);
	put_u64(writer, COMPANION_CODE_OFFSET);
	put(writer, build_id_head, sizeof(build_id_head));
	put(writer, writer->build_ids[object], COMPANION_BUILD_ID_BYTES);
	put_u32(writer, 5); /* readable, executable */
	put_u32(writer, 2); /* private */
	put_string(writer, path);
	put_who(writer, who);
	end_record(writer);
}

/* ---- samples ----------------------------------------------------------- */

/* Deeper than a record's 64 KiB has room for: the root's side is left out. */
#define CHAIN_MAX 8000

static size_t make_chain(struct writer *writer, uint32_t node,
                         enum sample_state state)
{
	const struct profile_node *nodes = writer->profile->nodes;
	size_t count = 0;

	writer->chain = memory_grow(writer->chain, &writer->chain_capacity,
	                            CHAIN_MAX + 2, sizeof(*writer->chain));
	if (writer->has_states)
		writer->chain[count++] = writer->states[state];
	if (node == PROFILE_ROOT)
		writer->chain[count++] = writer->no_stack;
	for (; node != PROFILE_ROOT && count < CHAIN_MAX;
	     node = nodes[node].parent)
		writer->chain[count++] = writer->addresses[nodes[node].frame];
	return count;
}

static void write_sample(struct writer *writer, const struct who *who,
                         uint32_t node, const struct profile_tag *tag)
{
	uint64_t interval_ns = writer->profile->session.interval_ns;
	size_t count = make_chain(writer, node, (enum sample_state)tag->state);

	begin_record(writer, PERF_RECORD_SAMPLE, 0);
	put_u64(writer, writer->chain[0]);
	put_who(writer, who);
	put_u64(writer, interval_ns > 0 ? interval_ns : INTERVAL_UNKNOWN);
	put_u64(writer, count + 1);
	put_u64(writer, (uint64_t)PERF_CONTEXT_USER);
	put(writer, writer->chain, count * sizeof(*writer->chain));
	end_record(writer);
}

static struct who who_is(const struct profile *profile,
                         const struct profile_tag *tag, uint64_t time_ns)
{
	uint64_t pid = profile->dumps[tag->dump].pid;
	struct who who = {
		.pid = pid > 0 ? (uint32_t)pid : 1,
		.thread_id = (uint32_t)tag->thread_id,
		.time_ns = time_ns,
	};

	if (who.thread_id == 0)
		who.thread_id = who.pid;
	return who;
}

static void write_samples(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	uint64_t time_ns = profile->session.start_monotonic_ns;
	struct who who;

	/* Dumps without our extension have no times: any will do. */
	for (size_t i = 0;
	     profile->moment_count == 0 && i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_tag *tag = &profile->tags[count->tag];

		for (uint64_t j = 0; j < count->samples; j++) {
			who = who_is(profile, tag, ++time_ns);
			write_sample(writer, &who, count->node, tag);
		}
	}
	for (size_t i = 0; i < profile->moment_count; i++) {
		const struct profile_moment *moment = &profile->moments[i];
		const struct profile_tag *tag = &profile->tags[moment->tag];

		who = who_is(profile, tag, moment->time_ns);
		write_sample(writer, &who, moment->node, tag);
	}
}

/* Threads and mappings are there before the first sample. */
static void write_processes(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	struct id_map known = {0};
	bool is_new;

	for (size_t i = 0; i < profile->tag_count; i++) {
		struct who who = who_is(profile, &profile->tags[i], 0);
		struct who process = {who.pid, who.pid, 0};

		id_map_add(&known, who.pid, 0, 0, &is_new);
		if (is_new) {
			write_command(writer, &process);
			for (int j = 0; j < OBJECT_COUNT; j++)
				write_mapping(writer, &process,
				              (enum object_kind)j);
		}
		id_map_add(&known, who.pid, who.thread_id, 0, &is_new);
		if (is_new && who.thread_id != who.pid)
			write_command(writer, &who);
	}
	id_map_free(&known);
}

/* ---- the file ---------------------------------------------------------- */

static void write_header(const struct writer *writer)
{
	const struct perf_event_attr attribute = {
		.type = PERF_TYPE_SOFTWARE,
		.size = ATTRIBUTE_BYTES,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = writer->profile->session.interval_ns,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
	                       PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
	                       PERF_SAMPLE_PERIOD,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.sample_id_all = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	const struct section no_ids = {0};
	struct data_header header = {
		.magic = DATA_MAGIC,
		.header_bytes = sizeof(header),
		.attribute_bytes = ATTRIBUTE_BYTES + sizeof(no_ids),
		.attributes = {sizeof(header),
	                       ATTRIBUTE_BYTES + sizeof(no_ids)},
	};

	header.data.offset = header.attributes.offset + header.attributes.bytes;
	header.data.bytes = writer->data_bytes;
	memcpy(header.magic, DATA_MAGIC, sizeof(header.magic));
	fwrite(&header, sizeof(header), 1, writer->file);
	fwrite(&attribute, ATTRIBUTE_BYTES, 1, writer->file);
	fwrite(&no_ids, sizeof(no_ids), 1, writer->file);
}

static int write_file(struct writer *writer)
{
	int error;

	writer->addresses = memory_zeroed(writer->profile->frame_count,
	                                  sizeof(*writer->addresses));
	error = write_companions(writer);
	if (error == 0) {
		write_header(writer);
		write_processes(writer);
		write_samples(writer);
		/* Once more, now that the length of the data is known. */
		rewind(writer->file);
		write_header(writer);
	}
	free(writer->addresses);
	free(writer->chain);
	free(writer->record.body);
	return error;
}

int output_perf(FILE *file, const struct profile *profile)
{
	struct writer writer = {.file = file, .profile = profile};

	return write_file(&writer);
}

int output_perf_states(FILE *file, const struct profile *profile)
{
	struct writer writer = {
		.file = file, .profile = profile, .has_states = true};

	return write_file(&writer);
}
