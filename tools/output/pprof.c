// SPDX-License-Identifier: MIT
/*
 * Profile of pprof: protocol buffer, compressed. Labels say state, thread, VM,
 * coroutine, its label, trace and process of the samples (`-tagfocus`,
 * `-tagroot`).
 *
 * Messages are written one by one as fields of the profile, so that only one
 * sample is in memory at a time.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/pprof.pb-c.h"
#include "profile/memory.h"
#include "stream/frame_name.h"

#define GZIP_WINDOW_BITS (15 + 16)
#define LABELS_MAX       7

/* Field numbers of Profile in pprof.proto. */
enum profile_field {
	FIELD_SAMPLE_TYPE = 1,
	FIELD_SAMPLE = 2,
	FIELD_LOCATION = 4,
	FIELD_FUNCTION = 5,
	FIELD_STRING = 6,
};

struct pprof {
	ProtobufCBuffer base; /* first: what is packed comes to append() */
	FILE *file;
	z_stream stream;
	const struct profile *profile;
	struct name_table strings; /* in the order of string_table */
	uint64_t *locations;       /* of one stack, leaf first */
	size_t location_capacity;
};

/* ---- bytes ------------------------------------------------------------- */

static void compress_bytes(struct pprof *pprof, const void *bytes, size_t count,
                           int flush)
{
	uint8_t out[16384];
	int status = Z_OK;

	pprof->stream.next_in = (Bytef *)(uintptr_t)bytes;
	pprof->stream.avail_in = (uInt)count;
	do {
		pprof->stream.next_out = out;
		pprof->stream.avail_out = sizeof(out);
		status = deflate(&pprof->stream, flush);
		fwrite(out, 1, sizeof(out) - pprof->stream.avail_out,
		       pprof->file);
	} while (status == Z_OK && pprof->stream.avail_out == 0);
}

static void append(ProtobufCBuffer *base, size_t count, const uint8_t *bytes)
{
	compress_bytes((struct pprof *)base, bytes, count, Z_NO_FLUSH);
}

static void put_number(struct pprof *pprof, uint64_t number)
{
	uint8_t bytes[10];
	size_t count = 0;

	for (; number >= 0x80; number >>= 7)
		bytes[count++] = (uint8_t)(number | 0x80);
	bytes[count++] = (uint8_t)number;
	compress_bytes(pprof, bytes, count, Z_NO_FLUSH);
}

/* A field that has a length: a message or a string. */
static void put_field(struct pprof *pprof, enum profile_field field,
                      size_t bytes)
{
	put_number(pprof, (uint64_t)field << 3 | 2);
	put_number(pprof, bytes);
}

static void put_message(struct pprof *pprof, enum profile_field field,
                        const ProtobufCMessage *message)
{
	put_field(pprof, field, protobuf_c_message_get_packed_size(message));
	protobuf_c_message_pack_to_buffer(message, &pprof->base);
}

static int64_t string_number(struct pprof *pprof, const char *string)
{
	return name_table_add(&pprof->strings, string, strlen(string));
}

/* ---- functions and locations ------------------------------------------- */

static void put_function(struct pprof *pprof, uint32_t id,
                         const struct profile_frame *frame)
{
	Pprof__Function function = PPROF__FUNCTION__INIT;

	function.id = id;
	function.name = string_number(pprof, frame->name);
	function.system_name = function.name;
	function.filename = string_number(pprof, frame->file);
	function.start_line = frame->first_line;
	put_message(pprof, FIELD_FUNCTION, &function.base);
}

static void put_location(struct pprof *pprof, uint32_t id, uint32_t function,
                         const struct profile_frame *frame)
{
	Pprof__Line line = PPROF__LINE__INIT;
	Pprof__Line *lines[1] = {&line};
	Pprof__Location location = PPROF__LOCATION__INIT;

	line.function_id = function;
	line.line = frame->line > 0 ? frame->line : frame->first_line;
	location.id = id;
	location.n_line = 1;
	location.line = lines;
	put_message(pprof, FIELD_LOCATION, &location.base);
}

/* pprof leaves samples without a location out: they get one of their own, whose
 * id is that of no frame. */
static void put_no_stack(struct pprof *pprof)
{
	const struct profile_frame frame = {.name = "[no stack]", .file = ""};
	uint32_t id = (uint32_t)pprof->profile->frame_count;

	put_function(pprof, id, &frame);
	put_location(pprof, id, id, &frame);
}

/* Lines of one function are locations of it. */
static void put_frames(struct pprof *pprof)
{
	const struct profile *profile = pprof->profile;
	struct id_map known = {0};
	bool is_new;

	for (uint32_t i = 1; i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		uint32_t function =
			*id_map_add(&known, (uintptr_t)frame->name,
		                    (uintptr_t)frame->file, i, &is_new);
		if (is_new)
			put_function(pprof, i, frame);
		put_location(pprof, i, function, frame);
	}
	id_map_free(&known);
	put_no_stack(pprof);
}

/* ---- samples ----------------------------------------------------------- */

struct labels {
	struct pprof *pprof;
	Pprof__Label label[LABELS_MAX];
	Pprof__Label *list[LABELS_MAX];
	size_t count;
};

static void add_label(struct labels *labels, const char *key, const char *text,
                      uint64_t number)
{
	Pprof__Label *label = &labels->label[labels->count];

	*label = (Pprof__Label)PPROF__LABEL__INIT;
	label->key = string_number(labels->pprof, key);
	if (text != NULL)
		label->str = string_number(labels->pprof, text);
	else
		label->num = (int64_t)number;
	labels->list[labels->count++] = label;
}

static void add_labels(struct labels *labels, const struct profile_tag *tag)
{
	const struct profile *profile = labels->pprof->profile;
	char text[FRAME_NAME_BYTES];

	add_label(labels, "state", sample_state_name(tag->state), 0);
	if (tag->trace != 0)
		add_label(labels, "trace", profile->frames[tag->trace].name, 0);
	if (tag->thread_id != 0)
		add_label(labels, "thread", NULL, tag->thread_id);
	if (tag->vm_number != 0)
		add_label(labels, "vm", NULL, tag->vm_number);
	if (tag->coroutine != 0) {
		snprintf(text, sizeof(text), "0x%llx",
		         (unsigned long long)tag->coroutine);
		add_label(labels, "coroutine", text, 0);
	}
	if (tag->label != NULL) { /* strings are UTF-8 */
		frame_name_native(text, tag->label, strlen(tag->label));
		add_label(labels, "label", text, 0);
	}
	if (profile->dumps != NULL && profile->dumps[tag->dump].pid != 0)
		add_label(labels, "process", NULL,
		          profile->dumps[tag->dump].pid);
}

static size_t climb(struct pprof *pprof, uint32_t node)
{
	const struct profile_node *nodes = pprof->profile->nodes;
	size_t depth = 0;

	do {
		pprof->locations =
			memory_grow(pprof->locations, &pprof->location_capacity,
		                    depth + 1, sizeof(*pprof->locations));
		pprof->locations[depth++] =
			node != PROFILE_ROOT ? nodes[node].frame
					     : pprof->profile->frame_count;
		node = nodes[node].parent;
	} while (node != PROFILE_ROOT);
	return depth;
}

static void put_sample(struct pprof *pprof, const struct profile_count *count)
{
	const struct profile *profile = pprof->profile;
	struct labels labels = {.pprof = pprof};
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	int64_t values[2] = {
		(int64_t)count->samples,
		(int64_t)(count->samples * profile->session.interval_ns),
	};

	sample.n_location_id = climb(pprof, count->node);
	sample.location_id = pprof->locations;
	sample.n_value = profile->session.interval_ns > 0 ? 2 : 1;
	sample.value = values;
	add_labels(&labels, &profile->tags[count->tag]);
	sample.n_label = labels.count;
	sample.label = labels.list;
	put_message(pprof, FIELD_SAMPLE, &sample.base);
}

/* ---- the whole --------------------------------------------------------- */

static void put_type(struct pprof *pprof, const char *type, const char *unit)
{
	Pprof__ValueType value = PPROF__VALUE_TYPE__INIT;

	value.type = string_number(pprof, type);
	value.unit = string_number(pprof, unit);
	put_message(pprof, FIELD_SAMPLE_TYPE, &value.base);
}

/* The fields that there is one of. A message in several parts is read as one,
 * so they go out as a profile of their own. */
static void put_facts(struct pprof *pprof, const char *title)
{
	const struct profile_session *session = &pprof->profile->session;
	Pprof__Profile facts = PPROF__PROFILE__INIT;
	Pprof__ValueType period = PPROF__VALUE_TYPE__INIT;
	int64_t comment = string_number(pprof, title);

	facts.n_comment = 1;
	facts.comment = &comment;
	if (session->interval_ns > 0) {
		period.type = string_number(pprof, "cpu");
		period.unit = string_number(pprof, "nanoseconds");
		facts.period_type = &period;
		facts.period = (int64_t)session->interval_ns;
		facts.time_nanos = (int64_t)session->start_realtime_ns;
	}
	if (session->ended)
		facts.duration_nanos = (int64_t)(session->stop_monotonic_ns -
		                                 session->start_monotonic_ns);
	protobuf_c_message_pack_to_buffer(&facts.base, &pprof->base);
}

static void put_all(struct pprof *pprof, const char *title)
{
	const struct profile *profile = pprof->profile;

	string_number(pprof, ""); /* string 0 is the empty one */
	put_type(pprof, "samples", "count");
	if (profile->session.interval_ns > 0)
		put_type(pprof, "cpu", "nanoseconds");
	put_facts(pprof, title);
	put_frames(pprof);
	for (size_t i = 0; i < profile->count_count; i++)
		put_sample(pprof, &profile->counts[i]);
	for (uint32_t i = 0; i < pprof->strings.count; i++) {
		const char *string = name_table_get(&pprof->strings, i);

		put_field(pprof, FIELD_STRING, strlen(string));
		compress_bytes(pprof, string, strlen(string), Z_NO_FLUSH);
	}
}

void output_pprof(FILE *file, const struct profile *profile, const char *title)
{
	struct pprof pprof = {
		.base = {.append = append},
		.file = file,
		.profile = profile,
	};
	char safe_title[FRAME_NAME_BYTES]; /* strings are UTF-8 */

	if (deflateInit2(&pprof.stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
	                 GZIP_WINDOW_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		memory_exhausted();
	frame_name_native(safe_title, title, strlen(title));
	put_all(&pprof, safe_title);
	compress_bytes(&pprof, "", 0, Z_FINISH);
	deflateEnd(&pprof.stream);
	name_table_free(&pprof.strings);
	free(pprof.locations);
}
