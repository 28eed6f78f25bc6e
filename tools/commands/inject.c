// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof inject: writes the perf.data of an ordinary perf record once
 * more, in which the samples of a profiled thread have the Lua stacks of a dump
 * of the same time.
 *
 * A sample of perf is matched with the sample of the dump that is nearest in
 * time among those at the same place (guest_samples.h). Its own leaf stays: what
 * the kernel saw, and native callees down to the VM. From the innermost Lua
 * frame on the stack is the dump's.
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "guest_samples.h"
#include "output/perf_objects.h"
#include "perf_file.h"
#include "perf_sample.h"
#include "profile/load.h"
#include "profile/memory.h"

#define RECORD_COMPRESSED  81 /* PERF_RECORD_COMPRESSED, of perf itself */
#define CHAIN_MAX          8000
#define DISTANCE_INTERVALS 10 /* how far a match may be, unless told */
#define FEATURE_BITS       256
#define SAMPLE_TYPE_OFFSET 24 /* in struct perf_event_attr */
#define NS_PER_MS          1000000u

static const uint64_t distance_bounds_ns[] = {
	100000, 500000, 1000000, 2000000, 5000000, 10000000, UINT64_MAX,
};

#define DISTANCE_COUNT                                                         \
	(sizeof(distance_bounds_ns) / sizeof(distance_bounds_ns[0]))

/* Memory of the VM's own code in the process. */
struct vm_range {
	uint64_t start, end;
};

struct injection {
	const char *input, *dump, *output;
	uint64_t max_ns;
	struct perf_file file;
	struct profile profile;
	struct guest_samples samples;
	struct perf_objects objects;
	struct vm_range *vm_ranges;
	size_t vm_range_count, vm_range_capacity;
	FILE *out;
	struct perf_record record;
	uint64_t chain[CHAIN_MAX + 1];
	size_t chain_count;
	uint64_t data_bytes;
	/* What became of them. */
	uint64_t total, of_thread, matched;
	uint64_t with_function; /* whose function a register tells */
	uint64_t by_distance[DISTANCE_COUNT];
};

/* ---- input ------------------------------------------------------------- */

static bool load_dump(struct injection *injection)
{
	const struct load_options options = {
		.host_addresses = true,
		.labels = true,
		.moments = true,
	};
	FILE *file = fopen(injection->dump, "rbe");
	struct load_result result;

	if (!file) {
		tell("cannot open %s: %s", injection->dump, strerror(errno));
		return false;
	}
	profile_load(&injection->profile, file, injection->dump, &options,
	             &result);
	fclose(file);
	if (!result.complete)
		tell("%s; using the samples up to there", result.error);
	if (injection->profile.moment_count == 0) {
		tell("%s has no samples with times: it must be of this "
		     "profiler, in mode C or L",
		     injection->dump);
		return false;
	}
	return true;
}

static bool open_recording(struct injection *injection)
{
	struct perf_file *file = &injection->file;

	if (!perf_file_open(file, injection->input)) {
		tell("%s", file->error);
		return false;
	}
	if (!perf_file_is_monotonic(file)) {
		tell("%s has another clock than the dump: record with perf "
		     "record -k mono",
		     injection->input);
		return false;
	}
	for (size_t i = 0; i < file->attribute_count; i++) {
		const char *refusal = perf_sample_refusal(&file->attributes[i]);

		if (refusal) {
			tell("%s: event %zu: %s", injection->input, i + 1,
			     refusal);
			return false;
		}
	}
	return true;
}

/* ---- the process ------------------------------------------------------- */

static bool is_vm_object(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return (strncmp(name, "luajit", 6) == 0 ||
	        strncmp(name, "libluajit", 9) == 0) &&
	       strncmp(name, "libluajit-sysprof", 17) != 0;
}

static void note_mapping(struct injection *injection,
                         const struct perf_event_header *record)
{
	size_t path_offset = record->type == PERF_RECORD_MMAP ? 40 : 72;
	const uint8_t *bytes = (const uint8_t *)record;
	uint64_t start, length;

	if (record->size <= path_offset ||
	    !memchr(bytes + path_offset, '\0', record->size - path_offset) ||
	    !is_vm_object((const char *)bytes + path_offset))
		return;
	memcpy(&start, bytes + 16, sizeof(start));
	memcpy(&length, bytes + 24, sizeof(length));
	injection->vm_ranges = memory_grow(
		injection->vm_ranges, &injection->vm_range_capacity,
		injection->vm_range_count + 1, sizeof(*injection->vm_ranges));
	injection->vm_ranges[injection->vm_range_count++] =
		(struct vm_range){start, start + length};
}

/* All of them first: records of different CPUs are not in the order of time. */
static void note_mappings(struct injection *injection)
{
	const struct perf_event_header *record;

	while ((record = perf_file_next(&injection->file)) != NULL)
		if (record->type == PERF_RECORD_MMAP ||
		    record->type == PERF_RECORD_MMAP2)
			note_mapping(injection, record);
	perf_file_rewind(&injection->file);
}

static bool in_vm(const struct injection *injection, uint64_t address)
{
	for (size_t i = 0; i < injection->vm_range_count; i++)
		if (address >= injection->vm_ranges[i].start &&
		    address < injection->vm_ranges[i].end)
			return true;
	return false;
}

/* ---- chains ------------------------------------------------------------ */

static void add_address(struct injection *injection, uint64_t address)
{
	if (injection->chain_count < CHAIN_MAX)
		injection->chain[injection->chain_count++] = address;
}

static bool is_user_address(uint64_t address)
{
	return address < UINT64_C(1) << 63;
}

/* Native callees of the VM, leaf first, without the VM itself: all of them, or
 * none where the chain does not lead there. */
static size_t native_callees(const struct injection *injection,
                             const uint64_t *user, size_t count,
                             uint64_t time_ns)
{
	for (size_t i = 0; i < count; i++)
		if (in_vm(injection, user[i]) ||
		    guest_samples_trace(&injection->samples, user[i], time_ns))
			return i;
	return 0;
}

/* Copies the kernel's part; returns the user's. */
static const uint64_t *copy_kernel_part(struct injection *injection,
                                        const struct perf_sample *sample,
                                        size_t *count)
{
	size_t i = 0;

	while (i < sample->chain_count &&
	       sample->chain[i] != (uint64_t)PERF_CONTEXT_USER)
		add_address(injection, sample->chain[i++]);
	if (i < sample->chain_count)
		i++;
	*count = sample->chain_count - i;
	return sample->chain + i;
}

/* The dump's frames, from the innermost one of Lua on. */
static void add_guest_frames(struct injection *injection, uint32_t node)
{
	const struct profile *profile = &injection->profile;

	while (node != PROFILE_ROOT &&
	       profile->frames[profile->nodes[node].frame].kind == FRAME_HOST)
		node = profile->nodes[node].parent;
	for (; node != PROFILE_ROOT; node = profile->nodes[node].parent)
		add_address(injection,
		            injection->objects
		                    .addresses[profile->nodes[node].frame]);
}

static void make_chain(struct injection *injection,
                       const struct perf_sample *sample, uint32_t node)
{
	size_t count, callees;
	const uint64_t *user;

	injection->chain_count = 0;
	user = copy_kernel_part(injection, sample, &count);
	add_address(injection, (uint64_t)PERF_CONTEXT_USER);
	callees = native_callees(injection, user, count, sample->time_ns);
	for (size_t i = 0; i < callees; i++)
		add_address(injection, user[i]);
	if (callees == 0 && is_user_address(sample->ip))
		add_address(injection, sample->ip);
	add_guest_frames(injection, node);
}

/* ---- samples ----------------------------------------------------------- */

/* The interrupted instruction of the program itself, 0 if it is not known. */
static uint64_t user_leaf(const struct perf_sample *sample)
{
	uint64_t ip;

	if (is_user_address(sample->ip))
		return sample->ip;
	if (perf_sample_register(sample, PERF_REG_X86_IP, &ip))
		return ip;
	for (size_t i = 0; i + 1 < sample->chain_count; i++)
		if (sample->chain[i] == (uint64_t)PERF_CONTEXT_USER)
			return sample->chain[i + 1];
	return 0;
}

static void count_distance(struct injection *injection, int64_t distance_ns)
{
	uint64_t size = (uint64_t)llabs(distance_ns);
	size_t i = 0;

	while (size >= distance_bounds_ns[i] && i + 1 < DISTANCE_COUNT)
		i++;
	injection->by_distance[i]++;
}

/* The interpreter has its position in the bytecode in a register: rbx, in builds
 * without GC64 rsi. 0: that was not recorded, or is elsewhere now. */
static uint32_t running_function(const struct guest_samples *samples,
                                 const struct perf_sample *sample)
{
	static const unsigned places[] = {PERF_REG_X86_BX, PERF_REG_X86_SI};
	uint32_t function = 0;
	uint64_t pc;

	for (size_t i = 0; function == 0 && i < 2; i++)
		if (perf_sample_register(sample, places[i], &pc))
			function = guest_samples_function(samples, pc,
			                                  sample->time_ns);
	return function;
}

static bool find_guest(struct injection *injection,
                       const struct perf_sample *sample, uint32_t *node)
{
	struct guest_samples *samples = &injection->samples;
	uint64_t leaf = user_leaf(sample);
	struct guest_question question = {
		.thread_id = sample->thread_id,
		.place = PLACE_NATIVE,
		.trace = guest_samples_trace(samples, leaf, sample->time_ns),
		.time_ns = sample->time_ns,
		.max_ns = injection->max_ns,
	};
	int64_t distance_ns;

	if (question.trace != 0) {
		question.place = PLACE_TRACE;
	} else if (in_vm(injection, leaf)) {
		question.place = PLACE_VM;
		question.function = running_function(samples, sample);
	}
	injection->with_function += question.function != 0;
	if (!guest_samples_find(samples, &question, node, &distance_ns))
		return false;
	injection->matched++;
	count_distance(injection, distance_ns);
	return true;
}

static void put_range(struct injection *injection, const uint8_t *from,
                      const uint8_t *to)
{
	perf_record_put(&injection->record, from, (size_t)(to - from));
}

static void put_chain(struct injection *injection)
{
	perf_record_put_u64(&injection->record, injection->chain_count);
	perf_record_put(&injection->record, injection->chain,
	                injection->chain_count * sizeof(*injection->chain));
}

/* perf unwinds what has registers and a stack, and what has none it leaves. */
static void put_no_stack(struct injection *injection, uint64_t sample_type)
{
	if ((sample_type & PERF_SAMPLE_REGS_USER) != 0)
		perf_record_put_u64(&injection->record, 0);
	if ((sample_type & PERF_SAMPLE_STACK_USER) != 0)
		perf_record_put_u64(&injection->record, 0);
}

static void copy_record(struct injection *injection,
                        const struct perf_event_header *record)
{
	fwrite(record, 1, record->size, injection->out);
	injection->data_bytes += record->size;
}

/* As it was; its event has call chains now, so an empty one comes in. */
static void put_unmatched(struct injection *injection, uint64_t sample_type,
                          const struct perf_event_header *record,
                          const struct perf_sample *sample)
{
	if ((sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
		copy_record(injection, record);
		return;
	}
	injection->chain_count = 0;
	perf_record_begin(&injection->record, record->type, record->misc);
	put_range(injection, sample->before, sample->chain_part);
	put_chain(injection);
	put_range(injection, sample->middle, sample->end);
	injection->data_bytes +=
		perf_record_end(&injection->record, injection->out);
}

static void inject_sample(struct injection *injection,
                          const struct perf_event_header *record)
{
	size_t event = perf_sample_event(&injection->file, record);
	const struct perf_event_attr *attribute =
		&injection->file.attributes[event];
	struct perf_sample sample;
	uint32_t node;

	injection->total++;
	if (!perf_sample_read(&sample, attribute, record)) {
		copy_record(injection, record);
		return;
	}
	if (!guest_samples_has_thread(&injection->samples, sample.thread_id)) {
		put_unmatched(injection, attribute->sample_type, record,
		              &sample);
		return;
	}
	injection->of_thread++;
	if (!find_guest(injection, &sample, &node)) {
		put_unmatched(injection, attribute->sample_type, record,
		              &sample);
		return;
	}
	make_chain(injection, &sample, node);
	perf_record_begin(&injection->record, record->type, record->misc);
	put_range(injection, sample.before, sample.chain_part);
	put_chain(injection);
	put_range(injection, sample.middle, sample.stack);
	put_no_stack(injection, attribute->sample_type);
	put_range(injection, sample.rest, sample.end);
	injection->data_bytes +=
		perf_record_end(&injection->record, injection->out);
}

/* ---- output ------------------------------------------------------------ */

/* What identifies the sample of a record that is none, as the first event has
 * it; time 0 is before all. */
static void put_sample_id(struct injection *injection, uint32_t pid)
{
	const struct perf_event_attr *attribute =
		&injection->file.attributes[0];
	uint64_t type = attribute->sample_type, id = 0;

	if (!attribute->sample_id_all)
		return;
	if (injection->file.ids[0].bytes >= sizeof(id))
		memcpy(&id,
		       injection->file.bytes + injection->file.ids[0].offset,
		       sizeof(id));
	perf_record_put_u32(&injection->record, pid);
	perf_record_put_u32(&injection->record, pid);
	perf_record_put_u64(&injection->record, 0); /* time */
	if ((type & PERF_SAMPLE_ID) != 0)
		perf_record_put_u64(&injection->record, id);
	if ((type & PERF_SAMPLE_STREAM_ID) != 0)
		perf_record_put_u64(&injection->record, id);
	if ((type & PERF_SAMPLE_CPU) != 0)
		perf_record_put_u64(&injection->record, 0);
	if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
		perf_record_put_u64(&injection->record, id);
}

/* Everything before the data, with chains in all events. */
static void write_head(struct injection *injection)
{
	const struct perf_file *file = &injection->file;
	struct perf_file_header header = file->header;
	size_t bytes = file->header.data.offset;
	uint8_t *head = memory_zeroed(1, bytes + 1);

	memcpy(head, file->bytes, bytes);
	header.data.bytes = injection->data_bytes;
	memcpy(head, &header, sizeof(header));
	for (size_t i = 0; i < file->attribute_count; i++) {
		uint64_t type =
			file->attributes[i].sample_type | PERF_SAMPLE_CALLCHAIN;

		memcpy(head + header.attributes.offset +
		               i * header.attribute_bytes + SAMPLE_TYPE_OFFSET,
		       &type, sizeof(type));
	}
	fwrite(head, 1, bytes, injection->out);
	free(head);
}

static size_t feature_count(const struct perf_file_header *header)
{
	size_t count = 0;

	for (size_t i = 0; i < FEATURE_BITS / 64; i++)
		count += (size_t)__builtin_popcountll(header->features[i]);
	return count;
}

/* A table of sections behind the data, and the sections: further back or
 * forward by as much as the data has grown. */
static void write_features(struct injection *injection)
{
	const struct perf_file *file = &injection->file;
	uint64_t old_end = file->header.data.offset + file->header.data.bytes;
	uint64_t moved = injection->data_bytes - file->header.data.bytes;
	size_t table_bytes =
		feature_count(&file->header) * sizeof(struct perf_file_section);

	if (table_bytes > file->byte_count - old_end)
		return;
	for (size_t at = 0; at < table_bytes;
	     at += sizeof(struct perf_file_section)) {
		struct perf_file_section section;

		memcpy(&section, file->bytes + old_end + at, sizeof(section));
		section.offset += moved;
		fwrite(&section, sizeof(section), 1, injection->out);
	}
	fwrite(file->bytes + old_end + table_bytes, 1,
	       file->byte_count - old_end - table_bytes, injection->out);
}

/* Native frames of the dump are at their own addresses, which perf knows. */
static void keep_native_addresses(struct injection *injection)
{
	const struct profile *profile = &injection->profile;

	for (size_t i = 1; i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->kind == FRAME_HOST || frame->kind == FRAME_C)
			injection->objects.addresses[i] =
				strtoull(frame->name, NULL, 16);
	}
}

static int write_records(struct injection *injection)
{
	const struct perf_event_header *record;

	perf_objects_put_mapping(&injection->objects, PERF_OBJECT_LUA,
	                         &injection->record,
	                         (uint32_t)injection->profile.session.pid);
	put_sample_id(injection, (uint32_t)injection->profile.session.pid);
	injection->data_bytes +=
		perf_record_end(&injection->record, injection->out);
	while ((record = perf_file_next(&injection->file)) != NULL) {
		if (record->type == RECORD_COMPRESSED) {
			tell("%s is compressed: record without -z",
			     injection->input);
			return STATUS_BAD;
		}
		if (record->type == PERF_RECORD_SAMPLE)
			inject_sample(injection, record);
		else
			copy_record(injection, record);
	}
	return STATUS_GOOD;
}

static int write_output(struct injection *injection)
{
	int error, status;

	injection->objects = (struct perf_objects){
		.profile = &injection->profile,
		.output = injection->output,
		.has_object = {[PERF_OBJECT_LUA] = true},
	};
	error = perf_objects_write(&injection->objects);
	if (error != 0) {
		tell("cannot write the names beside %s: %s", injection->output,
		     strerror(-error));
		return STATUS_BAD;
	}
	keep_native_addresses(injection);
	note_mappings(injection);
	write_head(injection);
	status = write_records(injection);
	write_features(injection);
	rewind(injection->out);
	write_head(injection);
	return status;
}

/* ---- the command ------------------------------------------------------- */

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void print_result(const struct injection *injection)
{
	printf("%" PRIu64 " samples, %" PRIu64 " of profiled threads; %" PRIu64
	       " of those (%.1f %%) have Lua "
	       "stacks now\n",
	       injection->total, injection->of_thread, injection->matched,
	       percent(injection->matched, injection->of_thread));
	if (injection->with_function > 0)
		printf("%" PRIu64 " are of a Lua function that their registers "
		       "tell\n",
		       injection->with_function);
	for (size_t i = 0; i < DISTANCE_COUNT; i++) {
		if (injection->by_distance[i] == 0)
			continue;
		if (i + 1 < DISTANCE_COUNT)
			printf("  less than %4.1f ms away",
			       distance_bounds_ns[i] / 1e6);
		else
			printf("  farther             ");
		printf("  %8" PRIu64 "  %5.1f %%\n", injection->by_distance[i],
		       percent(injection->by_distance[i], injection->matched));
	}
}

static int run(struct injection *injection)
{
	int status;

	if (!open_recording(injection) || !load_dump(injection))
		return STATUS_BAD;
	if (injection->max_ns == 0)
		injection->max_ns = DISTANCE_INTERVALS *
		                    injection->profile.session.interval_ns;
	injection->out = fopen(injection->output, "we");
	if (!injection->out) {
		tell("cannot write %s: %s", injection->output, strerror(errno));
		return STATUS_BAD;
	}
	guest_samples_open(&injection->samples, &injection->profile);
	status = write_output(injection);
	guest_samples_close(&injection->samples);
	if (ferror(injection->out) | fclose(injection->out)) {
		tell("cannot write %s: %s", injection->output, strerror(errno));
		return STATUS_BAD;
	}
	if (status == STATUS_GOOD)
		print_result(injection);
	return status;
}

static void print_help(void)
{
	puts("Usage: luajit-sysprof inject -i perf.data -d DUMP -o FILE "
	     "[--max-distance MS]\n"
	     "Gives the samples of an ordinary recording (perf record -k mono, "
	     "with or without -g\n"
	     "or --call-graph dwarf, of any event) the Lua stacks of a dump of "
	     "the same time.\n"
	     "FILE.lua, which is written too, has the names. Recorded "
	     "registers (--user-regs=bx,ip,\n"
	     "or dwarf) tell which function the interpreter runs.\n"
	     "\n"
	     "  --max-distance MS  how far in time a sample of the dump may be "
	     "(10 intervals)");
}

static bool parse_distance(struct injection *injection, const char *argument)
{
	char *end;
	double milliseconds = strtod(argument, &end);

	if (end != argument && *end == '\0' && milliseconds > 0 &&
	    milliseconds <= 1e9) {
		injection->max_ns = (uint64_t)(milliseconds * NS_PER_MS);
		return true;
	}
	tell("--max-distance: expected a number of milliseconds, got '%.100s'",
	     argument);
	return false;
}

/* An exit status, or -1 to go on. */
static int parse(struct injection *injection, int argc, char **argv)
{
	static const struct option options[] = {
		{"max-distance", required_argument, NULL, 'm'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "i:d:o:", options, NULL)) !=
	       -1) {
		if (option == 'i')
			injection->input = optarg;
		else if (option == 'd')
			injection->dump = optarg;
		else if (option == 'o')
			injection->output = optarg;
		else if (option == 'h')
			print_help();
		else if (option != 'm' || !parse_distance(injection, optarg))
			return STATUS_USAGE;
		if (option == 'h')
			return STATUS_GOOD;
	}
	if (injection->input && injection->dump && injection->output &&
	    optind == argc)
		return -1;
	tell("expected -i perf.data -d DUMP -o FILE (see --help)");
	return STATUS_USAGE;
}

int command_inject(int argc, char **argv)
{
	struct injection *injection = memory_zeroed(1, sizeof(*injection));
	int status;

	status = parse(injection, argc, argv);
	if (status < 0)
		status = run(injection);
	perf_file_close(&injection->file);
	perf_objects_free(&injection->objects);
	perf_record_free(&injection->record);
	profile_close(&injection->profile);
	free(injection->vm_ranges);
	free(injection);
	return status;
}
