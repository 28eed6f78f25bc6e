// SPDX-License-Identifier: MIT
/* Loads a dump into a profile; see load.h. */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "loader.h"
#include "memory.h"

/* Bytes between two calls of the progress function. */
#define PROGRESS_BYTES (1u << 20)

/* ---- which samples, and what they have beside the stack ---------------- */

static bool accepts(const struct load_filter *filter, uint64_t number)
{
	for (size_t i = 0; i < filter->count; i++)
		if (filter->accepted[i] == number)
			return true;
	return filter->count == 0;
}

static bool asks_for_facts(const struct load_options *options)
{
	return options->threads.count > 0 || options->vms.count > 0 ||
	       options->coroutines.count > 0 || options->has_from ||
	       options->has_to;
}

static bool is_in_time(const struct load_options *options, uint64_t start_ns,
                       uint64_t time_ns)
{
	/* A sample may be a little earlier than the session's start. */
	uint64_t since_ns = time_ns > start_ns ? time_ns - start_ns : 0;

	return (!options->has_from || since_ns >= options->from_ns) &&
	       (!options->has_to || since_ns < options->to_ns);
}

static bool is_wanted(struct loader *loader, enum sample_state state)
{
	const struct load_options *options = &loader->options;
	const struct sample_item *item = &loader->item;

	if (options->states != 0 && (options->states >> state & 1) == 0)
		return false;
	if (!asks_for_facts(options))
		return true;
	if (!item->known) {
		loader->profile->gaps.no_facts_count++;
		return false;
	}
	return accepts(&options->threads, item->thread_id) &&
	       accepts(&options->vms, item->vm_number) &&
	       accepts(&options->coroutines, item->coroutine) &&
	       is_in_time(options, loader->profile->session.start_monotonic_ns,
	                  item->time_ns);
}

static bool is_same_tag(const struct profile_tag *a,
                        const struct profile_tag *b)
{
	return a->state == b->state && a->trace == b->trace &&
	       a->thread_id == b->thread_id && a->vm_number == b->vm_number &&
	       a->coroutine == b->coroutine && a->label == b->label;
}

/* NULL: none. One of the profile's strings. */
static const char *label_of(const struct loader *loader, uint64_t coroutine)
{
	const uint32_t *number = id_map_find(&loader->labels, coroutine, 0);

	return number && *number > 0
	               ? name_table_get(&loader->profile->names, *number - 1)
	               : NULL;
}

static uint32_t sample_tag(struct loader *loader, enum sample_state state,
                           uint32_t trace)
{
	const struct sample_item *item = &loader->item;
	struct profile_tag tag = {
		.trace = trace,
		.dump = loader->dump,
		.state = (uint8_t)state,
	};

	if (loader->options.labels && item->known) {
		tag.thread_id = item->thread_id;
		tag.vm_number = item->vm_number;
		tag.coroutine = item->coroutine;
		if (loader->labels.used > 0)
			tag.label = label_of(loader, item->coroutine);
	}
	if (!loader->has_last_tag || !is_same_tag(&tag, &loader->last_tag)) {
		loader->last_tag_index = profile_tag(loader->profile, &tag);
		loader->last_tag = tag;
		loader->has_last_tag = true;
	}
	return loader->last_tag_index;
}

/* A thread whose interval was lengthened has fewer samples, which stand for as
 * much more each. */
static uint32_t sample_weight(const struct loader *loader)
{
	const uint32_t *weight = NULL;

	if (loader->item.known)
		weight = id_map_find(&loader->weights, loader->item.thread_id,
		                     0);
	return weight ? *weight : 1;
}

static void count_node(struct loader *loader, uint32_t node,
                       enum sample_state state, uint32_t trace)
{
	struct profile *profile = loader->profile;
	uint32_t tag = sample_tag(loader, state, trace);

	uint32_t weight = sample_weight(loader);

	profile_add_samples(profile, node, tag, weight);
	profile->dumps[loader->dump].sample_count += weight;
	if (!loader->options.moments)
		return;
	profile->moments = memory_grow(
		profile->moments, &profile->moment_capacity,
		profile->moment_count + 1, sizeof(*profile->moments));
	profile->moments[profile->moment_count++] = (struct profile_moment){
		loader->item.known ? loader->item.time_ns : 0, node, tag,
		weight};
}

/* Counts a sample whose stack is frames, root first. */
static void count_stack(struct loader *loader, const uint32_t *frames,
                        size_t count, enum sample_state state, uint32_t trace)
{
	uint32_t node = PROFILE_ROOT;

	for (size_t i = 0; i < count; i++)
		node = profile_node(loader->profile, node, frames[i]);
	count_node(loader, node, state, trace);
}

/* ---- samples without the extension ------------------------------------- */

static void fill_join_guest(struct loader *loader,
                            const struct dump_record *record)
{
	loader->join_guest =
		memory_grow(loader->join_guest, &loader->join_guest_capacity,
	                    record->guest_count, sizeof(*loader->join_guest));
	for (size_t i = 0; i < record->guest_count; i++) {
		const struct dump_guest *from = &record->guest[i];
		struct join_guest *to = &loader->join_guest[i];

		*to = (struct join_guest){0};
		if (from->type == GUEST_LUA) {
			to->frame = naming_prototype(loader, from->value,
			                             from->line, 0);
		} else if (from->type == GUEST_FAST) {
			to->frame = naming_fast(loader, from->value);
		} else {
			to->frame = naming_c_function(loader, from->value);
			to->is_c = true;
			to->address = from->value;
		}
	}
}

static void count_joined(struct loader *loader,
                         const struct dump_record *record)
{
	struct profile_gaps *gaps = &loader->profile->gaps;

	fill_join_guest(loader, record);
	loader->join_host =
		memory_grow(loader->join_host, &loader->join_host_capacity,
	                    record->host_count, sizeof(*loader->join_host));
	for (size_t i = 0; i < record->host_count; i++)
		loader->join_host[i] =
			naming_host(loader, record->host[i])->join;

	join_stacks(&loader->join, loader->join_guest, record->guest_count,
	            loader->join_host, record->host_count);
	count_stack(loader, loader->join.frames, loader->join.count,
	            record->state, 0);

	if (!sample_state_has_guest(record->state))
		gaps->no_guest_count++;
	else if (record->guest_count > 0 && record->host_count > 0)
		gaps->joined_count++;
	if (record->host_count > 0)
		gaps->unplaced_count += loader->join.unplaced_count;
}

/* 0: the dump does not tell. */
static uint32_t trace_frame(struct loader *loader,
                            const struct dump_record *record)
{
	if (record->kind != DUMP_TRACE_SAMPLE || record->number == 0 ||
	    record->number == UNKNOWN_TRACE)
		return 0;
	return naming_trace(loader, record->number);
}

/* All that such a sample has is the trace and the function it starts in. */
static void count_trace(struct loader *loader, const struct dump_record *record,
                        uint32_t trace)
{
	uint32_t frames[2] = {
		naming_prototype(loader, record->address, record->line,
	                         FRAME_FLAG_COMPILED),
		trace,
	};

	count_stack(loader, frames, trace != 0 ? 2 : 1, STATE_TRACE, trace);
	loader->profile->gaps.trace_count++;
}

static void count_compat(struct loader *loader,
                         const struct dump_record *record)
{
	loader->compat_guest = memory_grow(
		loader->compat_guest, &loader->compat_guest_capacity,
		record->guest_count, sizeof(*loader->compat_guest));
	for (size_t i = 0; i < record->guest_count; i++)
		loader->compat_guest[i] = (struct compat_guest){
			.frame = naming_compat_guest(loader, &record->guest[i]),
			.is_c = record->guest[i].type == GUEST_C,
		};
	loader->compat_host =
		memory_grow(loader->compat_host, &loader->compat_host_capacity,
	                    record->host_count, sizeof(*loader->compat_host));
	for (size_t i = 0; i < record->host_count; i++) {
		const struct host_naming *naming =
			naming_host(loader, record->host[i]);

		loader->compat_host[i] = (struct compat_host){
			naming->join.frame, naming->compat};
	}
	compat_join_stacks(&loader->compat, loader->compat_guest,
	                   record->guest_count, loader->compat_host,
	                   record->host_count);
	count_stack(loader, loader->compat.frames, loader->compat.count,
	            record->state, 0);
}

static void count_sample(struct loader *loader,
                         const struct dump_record *record)
{
	enum sample_state state =
		record->kind == DUMP_TRACE_SAMPLE ? STATE_TRACE : record->state;
	uint32_t trace;

	loader->read_count++;
	if (!is_wanted(loader, state))
		return;
	if (loader->options.compat) {
		count_compat(loader, record);
		return;
	}
	trace = trace_frame(loader, record);
	if (loader->item.known)
		count_node(loader, loader->item.leaf, state, trace);
	else if (state == STATE_TRACE)
		count_trace(loader, record, trace);
	else
		count_joined(loader, record);
}

/* ---- records ----------------------------------------------------------- */

static bool load_record(struct loader *loader, const struct dump_record *record)
{
	switch (record->kind) {
	case DUMP_PROTO:
		symbols_add_prototype(&loader->symbols, record->address,
		                      record->text, record->text_bytes,
		                      record->line);
		naming_forget_prototypes(loader);
		naming_forget_traces(loader);
		if (loader->options.compat) /* counted as they appear */
			symbols_alias(&loader->symbols, record->text,
			              record->text_bytes);
		return true;
	case DUMP_C_SYMBOL:
		symbols_add_c(&loader->symbols, record->address, record->text,
		              record->text_bytes);
		naming_forget_hosts(loader);
		return true;
	case DUMP_TRACE:
		symbols_add_trace(
			&loader->symbols, record->number,
			&(struct trace){record->address, record->line});
		naming_forget_traces(loader);
		return true;
	case DUMP_EXTENSION:
		return loader->options.compat || extension_read(loader, record);
	case DUMP_EVENT: /* not in this kind of dump */
		return true;
	case DUMP_SAMPLE:
	case DUMP_TRACE_SAMPLE:
		count_sample(loader, record);
		loader->item.known = false;
		return true;
	}
	return true;
}

static void tell_progress(struct loader *loader, uint64_t *told_bytes)
{
	const struct load_options *options = &loader->options;
	uint64_t bytes = byte_input_offset(&loader->reader.in);

	if (options->progress == NULL || bytes - *told_bytes < PROGRESS_BYTES)
		return;
	*told_bytes = bytes;
	options->progress(options->progress_context, bytes);
}

static bool load_records(struct loader *loader, byte_input_reader reader,
                         void *context, const char *file_name)
{
	struct dump_record record;
	enum dump_read read;
	uint64_t told_bytes = 0;

	if (!dump_reader_open_input(&loader->reader, reader, context,
	                            file_name))
		return false;
	for (;;) {
		loader->reader.skip_stacks = loader->item.known;
		read = dump_reader_next(&loader->reader, &record);
		if (read != DUMP_READ_RECORD)
			return read == DUMP_READ_END;
		if (!load_record(loader, &record))
			return false;
		tell_progress(loader, &told_bytes);
	}
}

void loader_free(struct loader *loader)
{
	dump_reader_close(&loader->reader);
	symbols_free(&loader->symbols);
	symbolizer_close(loader->symbolizer);
	id_map_free(&loader->host_cache);
	id_map_free(&loader->weights);
	id_map_free(&loader->labels);
	id_map_free(&loader->proto_cache);
	id_map_free(&loader->trace_cache);
	join_free(&loader->join);
	compat_join_free(&loader->compat);
	free(loader->hosts);
	free(loader->tree);
	free(loader->join_guest);
	free(loader->join_host);
	free(loader->compat_guest);
	free(loader->compat_host);
	free(loader);
}

void profile_add_dump(struct profile *profile, byte_input_reader read,
                      void *context, const char *file_name,
                      const struct load_options *options,
                      struct load_result *result)
{
	struct loader *loader = memory_zeroed(1, sizeof(*loader));

	loader->options = *options;
	loader->profile = profile;
	loader->dump = profile_dump(profile, file_name);
	*result = (struct load_result){0};
	result->complete = load_records(loader, read, context, file_name);
	if (!options->is_live)
		result->has_trailing =
			dump_reader_has_trailing(&loader->reader);
	result->read_count = loader->read_count;
	result->bytes = byte_input_offset(&loader->reader.in);
	memcpy(result->error, loader->reader.error, sizeof(result->error));
	profile->dumps[loader->dump].pid = profile->session.pid;
	loader_free(loader);
}

void profile_load(struct profile *profile, FILE *file, const char *file_name,
                  const struct load_options *options,
                  struct load_result *result)
{
	profile_open(profile);
	profile_add_dump(profile, byte_input_read_file, file, file_name,
	                 options, result);
}
