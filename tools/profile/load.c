// SPDX-License-Identifier: MIT
/* Loads a dump into a profile; see load.h. */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "loader.h"
#include "memory.h"

/* Counts a sample whose stack is frames, root first. */
static void count_stack(struct loader *loader, const uint32_t *frames,
                        size_t count, enum sample_state state)
{
	uint32_t node = PROFILE_ROOT;

	for (size_t i = 0; i < count; i++)
		node = profile_node(loader->profile, node, frames[i]);
	profile_count(loader->profile, node, state);
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
	            record->state);

	if (!sample_state_has_guest(record->state))
		gaps->no_guest_count++;
	else if (record->guest_count > 0 && record->host_count > 0)
		gaps->joined_count++;
	if (record->host_count > 0)
		gaps->unplaced_count += loader->join.unplaced_count;
}

/* All that such a sample has is the trace and the function it starts in. */
static void count_trace(struct loader *loader, const struct dump_record *record)
{
	uint32_t frames[2] = {
		naming_prototype(loader, record->address, record->line,
	                         FRAME_FLAG_COMPILED),
	};
	size_t count = 1;

	if (record->number != 0 && record->number != UNKNOWN_TRACE)
		frames[count++] = naming_trace(loader, record->number);
	count_stack(loader, frames, count, STATE_TRACE);
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
	            record->state);
}

static void count_sample(struct loader *loader,
                         const struct dump_record *record)
{
	enum sample_state state =
		record->kind == DUMP_TRACE_SAMPLE ? STATE_TRACE : record->state;

	if (loader->options.compat)
		count_compat(loader, record);
	else if (loader->has_leaf)
		profile_count(loader->profile, loader->leaf, state);
	else if (state == STATE_TRACE)
		count_trace(loader, record);
	else
		count_joined(loader, record);
	loader->has_leaf = false;
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
		return true;
	case DUMP_EXTENSION:
		return loader->options.compat || extension_read(loader, record);
	case DUMP_SAMPLE:
	case DUMP_TRACE_SAMPLE:
		count_sample(loader, record);
		return true;
	}
	return true;
}

static bool load_records(struct loader *loader, FILE *file,
                         const char *file_name)
{
	struct dump_record record;
	enum dump_read read;

	if (!dump_reader_open(&loader->reader, file, file_name))
		return false;
	while ((read = dump_reader_next(&loader->reader, &record)) ==
	       DUMP_READ_RECORD)
		if (!load_record(loader, &record))
			return false;
	return read == DUMP_READ_END;
}

static void loader_free(struct loader *loader)
{
	dump_reader_close(&loader->reader);
	symbols_free(&loader->symbols);
	id_map_free(&loader->host_cache);
	id_map_free(&loader->proto_cache);
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

void profile_load(struct profile *profile, FILE *file, const char *file_name,
                  const struct load_options *options,
                  struct load_result *result)
{
	struct loader *loader = memory_zeroed(1, sizeof(*loader));

	profile_open(profile);
	loader->options = *options;
	loader->profile = profile;
	*result = (struct load_result){0};
	result->complete = load_records(loader, file, file_name);
	result->has_trailing = dump_reader_has_trailing(&loader->reader);
	memcpy(result->error, loader->reader.error, sizeof(result->error));
	loader_free(loader);
}
