// SPDX-License-Identifier: MIT
/* Profile: frames, stack tree, counts; see profile.h. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

void profile_open(struct profile *profile)
{
	*profile = (struct profile){0};
	profile->frames = memory_grow(NULL, &profile->frame_capacity, 1,
	                              sizeof(*profile->frames));
	profile->frames[0] = (struct profile_frame){0};
	profile->frame_count = 1;
	profile->nodes = memory_grow(NULL, &profile->node_capacity, 1,
	                             sizeof(*profile->nodes));
	profile->nodes[PROFILE_ROOT] = (struct profile_node){0};
	profile->node_count = 1;
}

static void free_session(struct profile_session *session)
{
	free(session->clock);
	free(session->vm);
	free(session->writer);
	*session = (struct profile_session){0};
}

void profile_close(struct profile *profile)
{
	free(profile->dumps);
	free(profile->frames);
	free(profile->nodes);
	free(profile->tags);
	free(profile->counts);
	free(profile->moments);
	free(profile->codes);
	free(profile->bytecodes);
	free(profile->mappings);
	free_session(&profile->session);
	name_table_free(&profile->names);
	id_map_free(&profile->sources);
	id_map_free(&profile->frames_by_facts);
	id_map_free(&profile->frames_by_address);
	id_map_free(&profile->nodes_by_parent);
	id_map_free(&profile->owners);
	id_map_free(&profile->places);
	id_map_free(&profile->coroutines);
	id_map_free(&profile->labelled);
	id_map_free(&profile->tags_by_facts);
	id_map_free(&profile->counts_by_node);
	*profile = (struct profile){0};
}

/* ---- frames and nodes -------------------------------------------------- */

/* The value of the pair; new pairs are numbered in order. */
static uint32_t number_pair(struct id_map *map, uint64_t first, uint64_t second)
{
	bool is_new;

	return *id_map_add(map, first, second, (uint32_t)map->used, &is_new);
}

static uint32_t *find_frame(struct profile *profile, uint32_t name,
                            uint32_t file, const struct profile_source *at,
                            unsigned kind_and_flags, bool *is_new)
{
	uint32_t added = (uint32_t)profile->frame_count;

	if (at->address != 0)
		return id_map_add(&profile->frames_by_address, at->address,
		                  (uint64_t)name << 16 | kind_and_flags, added,
		                  is_new);
	return id_map_add(
		&profile->frames_by_facts,
		(uint64_t)name << 32 |
			number_pair(&profile->sources, file, at->first_line),
		(uint64_t)at->line << 16 | kind_and_flags, added, is_new);
}

uint32_t profile_frame_at(struct profile *profile, enum frame_kind kind,
                          uint8_t flags, const char *name, size_t name_bytes,
                          const struct profile_source *source)
{
	const struct profile_source none = {.file = ""};
	const struct profile_source *at = source != NULL ? source : &none;
	uint32_t name_number =
		name_table_add(&profile->names, name, name_bytes);
	uint32_t file =
		name_table_add(&profile->names, at->file, at->file_bytes);
	uint32_t added = (uint32_t)profile->frame_count;
	bool is_new;
	uint32_t frame = *find_frame(profile, name_number, file, at,
	                             (unsigned)kind << 8 | flags, &is_new);

	if (!is_new)
		return frame;
	profile->frames =
		memory_grow(profile->frames, &profile->frame_capacity,
	                    ++profile->frame_count, sizeof(*profile->frames));
	profile->frames[added] = (struct profile_frame){
		.name = name_table_get(&profile->names, name_number),
		.file = name_table_get(&profile->names, file),
		.first_line = at->first_line,
		.line = at->line,
		.address = at->address,
		.kind = (uint8_t)kind,
		.flags = flags,
	};
	return added;
}

uint32_t profile_frame(struct profile *profile, enum frame_kind kind,
                       uint8_t flags, const char *name, size_t name_bytes)
{
	return profile_frame_at(profile, kind, flags, name, name_bytes, NULL);
}

uint32_t profile_copy_frame(struct profile *profile,
                            const struct profile_frame *frame)
{
	return profile_frame_at(profile, (enum frame_kind)frame->kind,
	                        frame->flags, frame->name, strlen(frame->name),
	                        &(struct profile_source){
					.file = frame->file,
					.file_bytes = strlen(frame->file),
					.first_line = frame->first_line,
					.line = frame->line,
					.address = frame->address,
				});
}

uint32_t profile_node(struct profile *profile, uint32_t parent, uint32_t frame)
{
	uint32_t added = (uint32_t)profile->node_count;
	bool is_new;
	uint32_t node = *id_map_add(&profile->nodes_by_parent, parent, frame,
	                            added, &is_new);

	if (!is_new)
		return node;
	profile->nodes =
		memory_grow(profile->nodes, &profile->node_capacity,
	                    ++profile->node_count, sizeof(*profile->nodes));
	profile->nodes[added] = (struct profile_node){
		.parent = parent,
		.frame = frame,
	};
	return added;
}

/* ---- samples ----------------------------------------------------------- */

const char *profile_string(struct profile *profile, const char *string)
{
	return name_table_get(
		&profile->names,
		name_table_add(&profile->names, string, strlen(string)));
}

void profile_add_mapping(struct profile *profile,
                         const struct profile_mapping *mapping)
{
	profile->mappings = memory_grow(
		profile->mappings, &profile->mapping_capacity,
		profile->mapping_count + 1, sizeof(*profile->mappings));
	profile->mappings[profile->mapping_count] = *mapping;
	profile->mappings[profile->mapping_count++].path =
		profile_string(profile, mapping->path);
}

uint32_t profile_dump(struct profile *profile, const char *file_name)
{
	profile->dumps =
		memory_grow(profile->dumps, &profile->dump_capacity,
	                    profile->dump_count + 1, sizeof(*profile->dumps));
	profile->dumps[profile->dump_count] = (struct profile_dump){
		.file_name = profile_string(profile, file_name),
	};
	free_session(&profile->session);
	return (uint32_t)profile->dump_count++;
}

uint32_t profile_tag(struct profile *profile, const struct profile_tag *tag)
{
	uint32_t owner =
		number_pair(&profile->owners, tag->thread_id, tag->vm_number);
	uint32_t place =
		number_pair(&profile->places,
	                    (uint64_t)tag->trace << 32 | tag->dump, tag->state);
	uint32_t coroutine =
		number_pair(&profile->coroutines, tag->coroutine, owner);
	const char *label =
		tag->label ? profile_string(profile, tag->label) : NULL;
	uint32_t labelled =
		number_pair(&profile->labelled, (uintptr_t)label, coroutine);
	uint32_t added = (uint32_t)profile->tag_count;
	bool is_new;
	uint32_t number = *id_map_add(&profile->tags_by_facts, labelled, place,
	                              added, &is_new);

	if (!is_new)
		return number;
	profile->tags =
		memory_grow(profile->tags, &profile->tag_capacity,
	                    ++profile->tag_count, sizeof(*profile->tags));
	profile->tags[added] = *tag;
	profile->tags[added].label = label;
	return added;
}

/* Most samples of a node have the tag of the one before. */
static struct profile_count *find_count(struct profile *profile, uint32_t node,
                                        uint32_t tag)
{
	uint32_t *last = &profile->nodes[node].last_count;
	uint32_t added = (uint32_t)profile->count_count;
	bool is_new;

	if (*last != 0 && profile->counts[*last - 1].tag == tag)
		return &profile->counts[*last - 1];

	uint32_t index = *id_map_add(&profile->counts_by_node, node, tag, added,
	                             &is_new);
	if (is_new) {
		profile->counts = memory_grow(
			profile->counts, &profile->count_capacity,
			++profile->count_count, sizeof(*profile->counts));
		profile->counts[added] = (struct profile_count){node, tag, 0};
	}
	*last = index + 1;
	return &profile->counts[index];
}

void profile_add_samples(struct profile *profile, uint32_t node, uint32_t tag,
                         uint64_t samples)
{
	find_count(profile, node, tag)->samples += samples;
	profile->by_state[profile->tags[tag].state] += samples;
	profile->sample_count += samples;
}

void profile_count(struct profile *profile, uint32_t node,
                   enum sample_state state)
{
	const struct profile_tag tag = {.state = (uint8_t)state};

	profile_add_samples(profile, node, profile_tag(profile, &tag), 1);
}

uint64_t profile_lost_count(const struct profile *profile)
{
	uint64_t count = 0;

	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		count += profile->lost[i];
	return count;
}

uint64_t profile_marked_count(const struct profile *profile)
{
	bool *marked = memory_zeroed(profile->node_count, sizeof(*marked));
	uint64_t count = 0;

	for (size_t i = 1; i < profile->node_count; i++) {
		const struct profile_node *node = &profile->nodes[i];

		marked[i] = marked[node->parent] ||
		            profile->frames[node->frame].kind == FRAME_MARKER;
	}
	for (size_t i = 0; i < profile->count_count; i++)
		if (marked[profile->counts[i].node])
			count += profile->counts[i].samples;
	free(marked);
	return count;
}
