// SPDX-License-Identifier: MIT
/*
 * Questions to a profile; see select.h. Each node is looked at once, from the
 * root: what holds for its parent is kept, so deep trees cost no more.
 */
#include "select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "stream/frame_name.h"

/* What a frame of the old profile is to the questions. */
enum frame_answer {
	ANSWER_INCLUDED = 1,
	ANSWER_EXCLUDED = 2,
	ANSWER_ROOT = 4,
	ANSWER_DROPPED = 8, /* not on the side that is wanted */
};

/* Where a node of the old profile came to be. */
struct placed {
	uint32_t node;   /* of the new one */
	uint32_t below;  /* the node under it, if its frame was kept */
	uint32_t frame;  /* old frame of node; 0: node is a group or the root */
	uint8_t answers; /* of all frames up to here */
};

struct select {
	struct profile *to;
	const struct profile *from;
	const struct selection *selection;
	uint8_t *answers;    /* of each old frame */
	uint32_t *plain;     /* old frame -> new one, 0: not made yet */
	uint32_t *with_line; /* the same, its line in the name */
	uint32_t *bases;     /* old tag -> node that its group stands on */
	bool *unwanted;      /* old tags with another label */
	struct id_map known; /* old node, base -> index in places */
	struct placed *places;
	size_t place_count;
	size_t place_capacity;
	uint32_t *path; /* old nodes on the way from a leaf to a known one */
	size_t path_capacity;
};

/* ---- frames ------------------------------------------------------------ */

static bool matches(const regex_t *regex, const char *name)
{
	return regexec(regex, name, 0, NULL, 0) == 0;
}

static bool is_named(const char *name, const char *wanted)
{
	size_t bytes = strlen(wanted);

	return strncmp(name, wanted, bytes) == 0 &&
	       (name[bytes] == '\0' || name[bytes] == ' ');
}

static bool is_on_side(uint8_t kind, enum select_side side)
{
	switch (kind) {
	case FRAME_HOST:
		return side != SIDE_GUEST;
	case FRAME_LUA:
	case FRAME_FAST:
		return side != SIDE_HOST;
	}
	return true;
}

static uint8_t answers_of(const struct selection *selection,
                          const struct profile_frame *frame)
{
	uint8_t answers = 0;

	if (selection->include != NULL &&
	    matches(selection->include, frame->name))
		answers |= ANSWER_INCLUDED;
	if (selection->exclude != NULL &&
	    matches(selection->exclude, frame->name))
		answers |= ANSWER_EXCLUDED;
	if (selection->root != NULL && is_named(frame->name, selection->root))
		answers |= ANSWER_ROOT;
	if (!is_on_side(frame->kind, selection->side))
		answers |= ANSWER_DROPPED;
	return answers;
}

static uint32_t plain_frame(struct select *select, uint32_t old)
{
	struct profile_frame frame = select->from->frames[old];

	if (select->selection->lines != LINES_KEEP)
		frame.line = 0;
	if (select->plain[old] == 0)
		select->plain[old] = profile_copy_frame(select->to, &frame);
	return select->plain[old];
}

/* Lua functions have their file in the name. */
static void write_with_line(char *name, size_t bytes,
                            const struct profile_frame *frame)
{
	const char *slash = strrchr(frame->file, '/');

	if (frame->kind != FRAME_HOST || frame->file[0] == '\0')
		snprintf(name, bytes, "%s line %u", frame->name, frame->line);
	else
		snprintf(name, bytes, "%s %s:%u", frame->name,
		         slash != NULL ? slash + 1 : frame->file, frame->line);
}

static uint32_t frame_with_line(struct select *select, uint32_t old)
{
	struct profile_frame frame = select->from->frames[old];
	char name[FRAME_NAME_BYTES + 32];

	if (frame.line == 0)
		return plain_frame(select, old);
	if (select->with_line[old] == 0) {
		write_with_line(name, sizeof(name), &frame);
		frame.name = name;
		select->with_line[old] = profile_copy_frame(select->to, &frame);
	}
	return select->with_line[old];
}

static uint32_t inner_frame(struct select *select, uint32_t old)
{
	return select->selection->lines == LINES_ALL
	               ? frame_with_line(select, old)
	               : plain_frame(select, old);
}

/* ---- groups ------------------------------------------------------------ */

/* Spelled as a whole: a label of one byte needs no brackets of its own. */
static void name_label(char *name, size_t bytes, const char *label)
{
	char safe[FRAME_NAME_BYTES];
	char whole[FRAME_NAME_BYTES];

	if (!label)
		snprintf(whole, sizeof(whole), "[no label]");
	else
		snprintf(whole, sizeof(whole), "[label %.400s]", label);
	frame_name_native(safe, whole, strlen(whole));
	snprintf(name, bytes, "%s", safe);
}

static void name_group(char *name, size_t bytes, const struct profile *profile,
                       const struct profile_tag *tag, enum select_group group)
{
	const struct profile_dump *dump = &profile->dumps[tag->dump];
	char safe[FRAME_NAME_BYTES];

	switch (group) {
	case GROUP_PROCESS:
		frame_name_native(safe, dump->file_name,
		                  strlen(dump->file_name));
		if (dump->pid != 0)
			snprintf(name, bytes, "[process %llu]",
			         (unsigned long long)dump->pid);
		else
			snprintf(name, bytes, "[process of %s]", safe);
		return;
	case GROUP_THREAD:
		snprintf(name, bytes, "[thread %llu]",
		         (unsigned long long)tag->thread_id);
		return;
	case GROUP_VM:
		snprintf(name, bytes, "[VM %llu]",
		         (unsigned long long)tag->vm_number);
		return;
	case GROUP_COROUTINE:
		snprintf(name, bytes, "[coroutine 0x%llx]",
		         (unsigned long long)tag->coroutine);
		return;
	case GROUP_LABEL:
		name_label(name, bytes, tag->label);
		return;
	case GROUP_STATE:
	case GROUP_COUNT:
		break;
	}
	snprintf(name, bytes, "[state %s]", sample_state_name(tag->state));
}

static uint32_t base_of(struct select *select, uint32_t tag)
{
	const struct selection *selection = select->selection;
	uint32_t node = PROFILE_ROOT;

	if (select->bases[tag] != 0)
		return select->bases[tag];
	for (size_t i = 0; i < selection->group_count; i++) {
		char name[FRAME_NAME_BYTES + 32];

		name_group(name, sizeof(name), select->from,
		           &select->from->tags[tag], selection->groups[i]);
		node = profile_node(select->to, node,
		                    profile_frame(select->to,
		                                  (enum frame_kind)FRAME_GROUP,
		                                  0, name, strlen(name)));
	}
	select->bases[tag] = node;
	return node;
}

/* ---- stacks ------------------------------------------------------------ */

/* The old frame on top of what its caller came to be. */
static struct placed place_frame(struct select *select,
                                 const struct placed *caller, uint32_t old)
{
	struct placed placed = *caller;
	uint8_t answers = select->answers[old];
	bool inside = select->selection->root == NULL ||
	              ((answers | caller->answers) & ANSWER_ROOT) != 0;

	placed.answers |= answers & (uint8_t)~ANSWER_DROPPED;
	if ((answers & ANSWER_DROPPED) != 0 || !inside)
		return placed;
	placed.below = caller->node;
	placed.frame = old;
	placed.node = profile_node(select->to, caller->node,
	                           inner_frame(select, old));
	return placed;
}

static uint32_t add_place(struct select *select, uint32_t old_node,
                          uint32_t base, const struct placed *placed)
{
	uint32_t index = (uint32_t)select->place_count;
	bool is_new;

	select->places =
		memory_grow(select->places, &select->place_capacity,
	                    ++select->place_count, sizeof(*select->places));
	select->places[index] = *placed;
	id_map_add(&select->known, old_node, base, index, &is_new);
	return index;
}

/* Climbs to a node that is known, then comes back placing the others. */
static struct placed place_node(struct select *select, uint32_t old_node,
                                uint32_t base)
{
	const struct profile *from = select->from;
	size_t depth = 0;
	const uint32_t *known;
	struct placed placed = {.node = base, .below = base};

	while ((known = id_map_find(&select->known, old_node, base)) == NULL &&
	       old_node != PROFILE_ROOT) {
		select->path = memory_grow(select->path, &select->path_capacity,
		                           depth + 1, sizeof(*select->path));
		select->path[depth++] = old_node;
		old_node = from->nodes[old_node].parent;
	}
	if (known != NULL)
		placed = select->places[*known];
	while (depth > 0) {
		old_node = select->path[--depth];
		placed = place_frame(select, &placed,
		                     from->nodes[old_node].frame);
		add_place(select, old_node, base, &placed);
	}
	return placed;
}

static bool is_selected(const struct selection *selection, uint8_t answers)
{
	return (selection->include == NULL || answers & ANSWER_INCLUDED) &&
	       (answers & ANSWER_EXCLUDED) == 0 &&
	       (selection->root == NULL || answers & ANSWER_ROOT);
}

/* False: the stack is not wanted. */
static bool find_node(struct select *select, uint32_t old_node, uint32_t tag,
                      uint32_t *node)
{
	struct placed placed =
		place_node(select, old_node, base_of(select, tag));

	if (select->unwanted[tag] ||
	    !is_selected(select->selection, placed.answers))
		return false;
	*node = placed.node;
	if (select->selection->lines == LINES_LEAF && placed.frame != 0)
		*node = profile_node(select->to, placed.below,
		                     frame_with_line(select, placed.frame));
	return true;
}

/* ---- the whole --------------------------------------------------------- */

static bool is_unwanted(const struct selection *selection,
                        const struct profile_tag *tag)
{
	return selection->label &&
	       !matches(selection->label, tag->label ? tag->label : "");
}

static uint32_t copy_tag(struct select *select, uint32_t old)
{
	struct profile_tag tag = select->from->tags[old];

	if (tag.trace != 0)
		tag.trace = profile_copy_frame(
			select->to, &select->from->frames[tag.trace]);
	return profile_tag(select->to, &tag);
}

static void copy_facts(struct profile *to, const struct profile *from)
{
	for (size_t i = 0; i < from->dump_count; i++) {
		uint32_t dump = profile_dump(to, from->dumps[i].file_name);

		to->dumps[dump].pid = from->dumps[i].pid;
	}
	for (size_t i = 0; i < from->mapping_count; i++)
		profile_add_mapping(to, &from->mappings[i]);
	to->session = from->session;
	to->session.clock = NULL;
	to->session.vm = NULL;
	to->session.writer = NULL;
	if (from->session.known) {
		to->session.clock = memory_copy_string(from->session.clock);
		to->session.vm = memory_copy_string(from->session.vm);
		to->session.writer = memory_copy_string(from->session.writer);
	}
	to->new_from = from->new_from;
	to->gaps = from->gaps;
	to->left_out_max = from->left_out_max;
	to->min_percent = from->min_percent;
	memcpy(to->lost, from->lost, sizeof(to->lost));
}

static void select_samples(struct select *select)
{
	const struct profile *from = select->from;
	uint32_t *tags = memory_zeroed(from->tag_count, sizeof(*tags));
	uint32_t node;

	for (size_t i = 0; i < from->tag_count; i++) {
		tags[i] = copy_tag(select, (uint32_t)i);
		select->unwanted[i] =
			is_unwanted(select->selection, &from->tags[i]);
	}
	for (size_t i = 0; i < from->count_count; i++) {
		const struct profile_count *count = &from->counts[i];

		if (!find_node(select, count->node, count->tag, &node))
			continue;
		profile_add_samples(select->to, node, tags[count->tag],
		                    count->samples);
		select->to->dumps[from->tags[count->tag].dump].sample_count +=
			count->samples;
	}
	for (size_t i = 0; i < from->moment_count; i++) {
		struct profile_moment moment = from->moments[i];
		struct profile *to = select->to;

		if (!find_node(select, moment.node, moment.tag, &node))
			continue;
		moment.node = node;
		moment.tag = tags[moment.tag];
		to->moments =
			memory_grow(to->moments, &to->moment_capacity,
		                    to->moment_count + 1, sizeof(*to->moments));
		to->moments[to->moment_count++] = moment;
	}
	free(tags);
}

static void select_once(struct profile *selected, const struct profile *all,
                        const struct selection *selection)
{
	struct select select = {
		.to = selected,
		.from = all,
		.selection = selection,
		.answers = memory_zeroed(all->frame_count, sizeof(uint8_t)),
		.plain = memory_zeroed(all->frame_count, sizeof(uint32_t)),
		.with_line = memory_zeroed(all->frame_count, sizeof(uint32_t)),
		.bases = memory_zeroed(all->tag_count, sizeof(uint32_t)),
		.unwanted = memory_zeroed(all->tag_count, sizeof(bool)),
	};

	profile_open(selected);
	copy_facts(selected, all);
	for (size_t i = 1; i < all->frame_count; i++)
		select.answers[i] = answers_of(selection, &all->frames[i]);
	select_samples(&select);
	free(select.answers);
	free(select.plain);
	free(select.with_line);
	free(select.bases);
	free(select.unwanted);
	free(select.places);
	free(select.path);
	id_map_free(&select.known);
}

/* ---- small subtrees ---------------------------------------------------- */

static uint64_t *subtree_samples(const struct profile *profile)
{
	uint64_t *totals = memory_zeroed(profile->node_count, sizeof(*totals));

	for (size_t i = 0; i < profile->count_count; i++)
		totals[profile->counts[i].node] += profile->counts[i].samples;
	for (size_t i = profile->node_count; i-- > 1;)
		totals[profile->nodes[i].parent] += totals[i];
	return totals;
}

/* Node of the pruned tree for each node. */
static uint32_t *prune_nodes(struct profile *profile, double percent)
{
	uint64_t *totals = subtree_samples(profile);
	size_t count = profile->node_count;
	uint32_t *kept = memory_zeroed(count, sizeof(*kept));
	bool *small = memory_zeroed(count, sizeof(*small));
	char name[64];
	int bytes = snprintf(name, sizeof(name), "[less than %g%%]", percent);
	uint32_t rest = profile_frame(profile, (enum frame_kind)FRAME_GROUP, 0,
	                              name, (size_t)bytes);
	double least = percent / 100 * (double)profile->sample_count;

	for (uint32_t i = 1; i < count; i++) {
		uint32_t parent = profile->nodes[i].parent;

		small[i] = small[parent] || (double)totals[i] < least;
		kept[i] = i;
		if (small[parent])
			kept[i] = kept[parent];
		else if (small[i])
			kept[i] = profile_node(profile, parent, rest);
	}
	free(small);
	free(totals);
	return kept;
}

static void prune(struct profile *profile, double percent)
{
	uint32_t *kept = prune_nodes(profile, percent);

	for (size_t i = 0; i < profile->count_count; i++)
		profile->counts[i].node = kept[profile->counts[i].node];
	for (size_t i = 0; i < profile->moment_count; i++)
		profile->moments[i].node = kept[profile->moments[i].node];
	free(kept);
}

void profile_select(struct profile *selected, const struct profile *all,
                    const struct selection *selection)
{
	select_once(selected, all, selection);
	if (selection->prune_percent > 0)
		prune(selected, selection->prune_percent);
}
