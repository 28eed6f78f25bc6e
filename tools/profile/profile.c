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

void profile_close(struct profile *profile)
{
	for (size_t i = 1; i < profile->frame_count; i++)
		free(profile->frames[i].name);
	free(profile->frames);
	free(profile->nodes);
	free(profile->session.clock);
	free(profile->session.vm);
	free(profile->session.writer);
	id_map_free(&profile->frames_by_hash);
	id_map_free(&profile->nodes_by_parent);
	*profile = (struct profile){0};
}

/* FNV-1a. */
static uint64_t hash_bytes(const char *bytes, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return hash;
}

static bool frame_is(const struct profile_frame *frame, const char *name,
                     size_t name_bytes)
{
	return strncmp(frame->name, name, name_bytes) == 0 &&
	       frame->name[name_bytes] == '\0';
}

uint32_t profile_frame(struct profile *profile, enum frame_kind kind,
                       uint8_t flags, const char *name, size_t name_bytes)
{
	name_bytes = strnlen(name, name_bytes);

	uint64_t hash = hash_bytes(name, name_bytes);
	uint32_t added = (uint32_t)profile->frame_count;
	bool is_new;
	uint32_t *first =
		id_map_add(&profile->frames_by_hash, hash,
	                   (uint64_t)kind << 8 | flags, added, &is_new);

	for (uint32_t i = is_new ? 0 : *first; i != 0;
	     i = profile->frames[i].same_hash)
		if (frame_is(&profile->frames[i], name, name_bytes))
			return i;

	profile->frames =
		memory_grow(profile->frames, &profile->frame_capacity,
	                    ++profile->frame_count, sizeof(*profile->frames));
	profile->frames[added] = (struct profile_frame){
		.name = memory_copy(name, name_bytes),
		.same_hash = is_new ? 0 : *first,
		.kind = (uint8_t)kind,
		.flags = flags,
	};
	*first = added;
	return added;
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

void profile_count(struct profile *profile, uint32_t node,
                   enum sample_state state)
{
	profile->nodes[node].samples[state]++;
	profile->by_state[state]++;
	profile->sample_count++;
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
		for (size_t state = 0; marked[i] && state < STATE_COUNT;
		     state++)
			count += node->samples[state];
	}
	free(marked);
	return count;
}
