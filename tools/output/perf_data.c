// SPDX-License-Identifier: MIT
/*
 * A perf.data, for perf report, perf script, perf diff and what reads those: the
 * merged stacks as samples of one event, in time. Needs neither perf nor any
 * right to write. Names are in objects that lie beside the file
 * (perf_objects.h).
 *
 * Numbers of the format are those of linux/perf_event.h and of perf's
 * Documentation/perf.data-file-format.txt; perf 6.1 and 6.12 open the result.
 * hotspot 1.3 opens it too: it counts no event without an id, and ends by a signal
 * where a sample is of a CPU (0, if none is told) that there is not.
 */
#include "output.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf_objects.h"
#include "perf_record.h"
#include "profile/memory.h"

#define DATA_MAGIC       "PERFILE2"
#define ATTRIBUTE_BYTES  PERF_ATTR_SIZE_VER5 /* older perfs take it, too */
#define COMMAND_NAME     "luajit"
#define INTERVAL_UNKNOWN 1
#define EVENT_ID         1

/* Bits of the header. hotspot believes none unless it has the command. */
#define FEATURE_CPUS    7
#define FEATURE_COMMAND 11

/* No address of a sample is there. */
#define KERNEL_ADDRESS UINT64_C(0xffffffff81000000)
#define KERNEL_BYTES   0x1000

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

struct writer {
	FILE *file;
	const struct profile *profile;
	struct perf_objects objects;
	struct perf_record record;
	uint64_t *chain; /* leaf first */
	size_t chain_capacity;
	size_t chain_count;
	unsigned mode; /* PERF_RECORD_MISC_*: of the chain's last address */
	uint64_t data_bytes;
};

/* ---- records ----------------------------------------------------------- */

static void end_record(struct writer *writer)
{
	writer->data_bytes += perf_record_end(&writer->record, writer->file);
}

/* Who a record is about. */
struct who {
	uint32_t pid;
	uint32_t thread_id;
	uint64_t time_ns;
};

static void put_who(struct writer *writer, const struct who *who)
{
	perf_record_put_u32(&writer->record, who->pid);
	perf_record_put_u32(&writer->record, who->thread_id);
	perf_record_put_u64(&writer->record, who->time_ns);
}

/* Of what is not a sample. */
static void put_trailer(struct writer *writer, const struct who *who)
{
	put_who(writer, who);
	perf_record_put_u64(&writer->record, EVENT_ID);
}

static void write_command(struct writer *writer, const struct who *who)
{
	perf_record_begin(&writer->record, PERF_RECORD_COMM,
	                  PERF_RECORD_MISC_USER);
	perf_record_put_u32(&writer->record, who->pid);
	perf_record_put_u32(&writer->record, who->thread_id);
	perf_record_put_string(&writer->record, COMMAND_NAME);
	put_trailer(writer, who);
	end_record(writer);
}

static void write_mapping(struct writer *writer, const struct who *who,
                          enum perf_object object)
{
	perf_objects_put_mapping(&writer->objects, object, &writer->record,
	                         who->pid);
	put_trailer(writer, who);
	end_record(writer);
}

/* ---- samples ----------------------------------------------------------- */

/* Deeper than a record's 64 KiB has room for: the root's side is left out. */
#define CHAIN_MAX 8000

static unsigned mode_of(const struct writer *writer, uint32_t node)
{
	const struct profile *profile = writer->profile;
	uint32_t frame = profile->nodes[node].frame;

	return profile->frames[frame].flags & PROFILE_FLAG_KERNEL
	               ? PERF_RECORD_MISC_KERNEL
	               : PERF_RECORD_MISC_USER;
}

/* A mark stands before the first address of user code or of the kernel. */
static void add_address(struct writer *writer, unsigned mode, uint64_t address)
{
	if (mode != writer->mode)
		writer->chain[writer->chain_count++] =
			mode == PERF_RECORD_MISC_KERNEL
				? (uint64_t)PERF_CONTEXT_KERNEL
				: (uint64_t)PERF_CONTEXT_USER;
	writer->mode = mode;
	writer->chain[writer->chain_count++] = address;
}

static void make_chain(struct writer *writer, uint32_t node,
                       enum sample_state state)
{
	const struct profile_node *nodes = writer->profile->nodes;

	writer->chain = memory_grow(writer->chain, &writer->chain_capacity,
	                            CHAIN_MAX + 4, sizeof(*writer->chain));
	writer->chain_count = 0;
	writer->mode = 0;
	if (writer->objects.has_states)
		add_address(writer, PERF_RECORD_MISC_USER,
		            writer->objects.states[state]);
	if (node == PROFILE_ROOT)
		add_address(writer, PERF_RECORD_MISC_USER,
		            writer->objects.no_stack);
	for (; node != PROFILE_ROOT && writer->chain_count < CHAIN_MAX;
	     node = nodes[node].parent)
		add_address(writer, mode_of(writer, node),
		            writer->objects.addresses[nodes[node].frame]);
}

static void write_sample(struct writer *writer, const struct who *who,
                         uint32_t node, const struct profile_tag *tag,
                         uint32_t samples)
{
	uint64_t interval_ns = writer->profile->session.interval_ns;

	make_chain(writer, node, (enum sample_state)tag->state);
	/* The mark and the address behind it are those of the leaf. */
	perf_record_begin(&writer->record, PERF_RECORD_SAMPLE,
	                  writer->chain[0] == (uint64_t)PERF_CONTEXT_KERNEL
	                          ? PERF_RECORD_MISC_KERNEL
	                          : PERF_RECORD_MISC_USER);
	perf_record_put_u64(&writer->record, EVENT_ID);
	perf_record_put_u64(&writer->record, writer->chain[1]);
	put_who(writer, who);
	perf_record_put_u64(
		&writer->record,
		samples * (interval_ns > 0 ? interval_ns : INTERVAL_UNKNOWN));
	perf_record_put_u64(&writer->record, writer->chain_count);
	perf_record_put(&writer->record, writer->chain,
	                writer->chain_count * sizeof(*writer->chain));
	end_record(writer);
}

static uint32_t pid_of(const struct profile *profile, uint32_t dump)
{
	uint64_t pid = profile->dumps[dump].pid;

	return pid > 0 ? (uint32_t)pid : 1;
}

static struct who who_is(const struct profile *profile,
                         const struct profile_tag *tag, uint64_t time_ns)
{
	struct who who = {
		.pid = pid_of(profile, tag->dump),
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
			write_sample(writer, &who, count->node, tag, 1);
		}
	}
	for (size_t i = 0; i < profile->moment_count; i++) {
		const struct profile_moment *moment = &profile->moments[i];
		const struct profile_tag *tag = &profile->tags[moment->tag];

		who = who_is(profile, tag, moment->time_ns);
		write_sample(writer, &who, moment->node, tag, moment->samples);
	}
}

/* Code that is in a file. Where another file was before, from that moment on. */
static void write_file_mapping(struct writer *writer,
                               const struct profile_mapping *mapping)
{
	const struct profile *profile = writer->profile;
	uint32_t pid = pid_of(profile, mapping->dump);
	struct who who = {pid, pid, 0};

	for (const struct profile_mapping *other = profile->mappings;
	     other < mapping; other++)
		if (other->is_used && pid_of(profile, other->dump) == pid &&
		    other->start < mapping->start + mapping->bytes &&
		    mapping->start < other->start + other->bytes)
			who.time_ns = mapping->time_ns;
	perf_record_put_mapping(
		&writer->record,
		&(struct perf_mapping){
			.pid = pid,
			.start = mapping->start,
			.bytes = mapping->bytes,
			.file_offset = mapping->file_offset,
			.build_id = mapping->build_id,
			.build_id_bytes = mapping->build_id_bytes,
			.path = mapping->path,
		});
	put_trailer(writer, &who);
	end_record(writer);
}

/* The kernel's code as a module, with the names of the dump. A kernel itself has to be
 * there, and elsewhere: perf takes the one that it runs on else, whose code may hide
 * ours, and warns that it cannot name it. */
static void write_kernel(struct writer *writer)
{
	const struct who nobody = {0};

	perf_record_put_mapping(&writer->record,
	                        &(struct perf_mapping){
					.is_kernel = true,
					.start = KERNEL_ADDRESS,
					.bytes = KERNEL_BYTES,
					.file_offset = KERNEL_ADDRESS,
					.path = "[kernel.kallsyms]_text",
				});
	put_trailer(writer, &nobody);
	end_record(writer);
	write_mapping(writer, &nobody, PERF_OBJECT_KERNEL);
}

/* Threads and mappings are there before the first sample. */
static void write_processes(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	struct id_map known = {0};
	bool is_new;

	if (writer->objects.has_object[PERF_OBJECT_KERNEL])
		write_kernel(writer);
	for (size_t i = 0; i < profile->tag_count; i++) {
		struct who who = who_is(profile, &profile->tags[i], 0);
		struct who process = {who.pid, who.pid, 0};

		id_map_add(&known, who.pid, 0, 0, &is_new);
		if (is_new) {
			write_command(writer, &process);
			write_mapping(writer, &process, PERF_OBJECT_LUA);
			write_mapping(writer, &process, PERF_OBJECT_NATIVE);
		}
		id_map_add(&known, who.pid, who.thread_id, 0, &is_new);
		if (is_new && who.thread_id != who.pid)
			write_command(writer, &who);
	}
	for (size_t i = 0; i < profile->mapping_count; i++)
		if (profile->mappings[i].is_used)
			write_file_mapping(writer, &profile->mappings[i]);
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
	                       PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.sample_id_all = 1,
		.exclude_kernel =
			!writer->objects.has_object[PERF_OBJECT_KERNEL],
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	const uint64_t id = EVENT_ID;
	const struct section ids = {sizeof(struct data_header), sizeof(id)};
	struct data_header header = {
		.header_bytes = sizeof(header),
		.features = {1 << FEATURE_CPUS | 1 << FEATURE_COMMAND},
		.attribute_bytes = ATTRIBUTE_BYTES + sizeof(ids),
		.attributes = {ids.offset + ids.bytes,
	                       ATTRIBUTE_BYTES + sizeof(ids)},
	};

	header.data.offset = header.attributes.offset + header.attributes.bytes;
	header.data.bytes = writer->data_bytes;
	memcpy(header.magic, DATA_MAGIC, sizeof(header.magic));
	fwrite(&header, sizeof(header), 1, writer->file);
	fwrite(&id, sizeof(id), 1, writer->file);
	fwrite(&attribute, ATTRIBUTE_BYTES, 1, writer->file);
	fwrite(&ids, sizeof(ids), 1, writer->file);
}

/* Behind the data, in the order of their bits. */
static void write_features(struct writer *writer)
{
	const uint32_t cpus[] = {1, 1}; /* how many there are, and work */
	const struct {
		uint32_t count;
		uint32_t bytes;
		char word[8]; /* NUL-terminated */
	} command = {1, sizeof(command.word), COMMAND_NAME};
	struct section sections[2] = {{.bytes = sizeof(cpus)},
	                              {.bytes = sizeof(command)}};

	sections[0].offset = (uint64_t)ftell(writer->file) + sizeof(sections);
	sections[1].offset = sections[0].offset + sections[0].bytes;
	fwrite(sections, sizeof(sections), 1, writer->file);
	fwrite(cpus, sizeof(cpus), 1, writer->file);
	fwrite(&command, sizeof(command), 1, writer->file);
}

static bool has_kernel(const struct profile *profile)
{
	for (size_t i = 1; i < profile->frame_count; i++)
		if (profile->frames[i].flags & PROFILE_FLAG_KERNEL)
			return true;
	return false;
}

static int write_file(FILE *file, const struct profile *profile,
                      bool has_states)
{
	struct writer writer = {
		.file = file,
		.profile = profile,
		.objects = {.profile = profile,
	                    .output = profile->output_path,
	                    .has_states = has_states,
	                    .has_object =
	                            {
					    [PERF_OBJECT_LUA] = true,
					    [PERF_OBJECT_NATIVE] = true,
					    [PERF_OBJECT_KERNEL] =
						    has_kernel(profile),
				    }},
	};
	int error = perf_objects_write(&writer.objects);

	if (error == 0) {
		write_header(&writer);
		write_processes(&writer);
		write_samples(&writer);
		write_features(&writer);
		/* Once more, now that the length of the data is known. */
		rewind(file);
		write_header(&writer);
	}
	perf_objects_free(&writer.objects);
	perf_record_free(&writer.record);
	free(writer.chain);
	return error;
}

int output_perf(FILE *file, const struct profile *profile)
{
	return write_file(file, profile, false);
}

int output_perf_states(FILE *file, const struct profile *profile)
{
	return write_file(file, profile, true);
}
