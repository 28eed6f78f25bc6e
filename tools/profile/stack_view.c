// SPDX-License-Identifier: MIT
/* The stacks of a profile in order; see stack_view.h. */
#include "stack_view.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* A frame and its place in the order of names. */
struct ranked {
	const struct profile_frame *frame;
	uint32_t index; /* of the frame */
	uint32_t rank;  /* frames that are one have the same */
};

/* A node before the entries are in order. */
struct draft {
	uint32_t parent; /* index of a draft */
	uint32_t rank;
	uint32_t frame; /* index of the profile's frame */
	uint64_t self;
	uint64_t total; /* self, and that of all above */
	uint64_t new_self;
	uint64_t by_state[STATE_COUNT];
};

static int compare_names(const void *left, const void *right)
{
	const struct ranked *a = left;
	const struct ranked *b = right;
	int order = strcmp(a->frame->name, b->frame->name);

	if (order == 0)
		order = (int)a->frame->kind - (int)b->frame->kind;
	if (order == 0)
		order = (int)a->frame->flags - (int)b->frame->flags;
	if (order == 0)
		order = strcmp(a->frame->file, b->frame->file);
	if (order == 0 && a->frame->line != b->frame->line)
		order = a->frame->line < b->frame->line ? -1 : 1;
	return order;
}

/* Rank of each frame of the profile. */
static uint32_t *rank_frames(const struct profile *profile,
                             enum stack_view_merge merge)
{
	size_t count = profile->frame_count;
	struct ranked *ranked = memory_zeroed(count, sizeof(*ranked));
	uint32_t *ranks = memory_zeroed(count, sizeof(*ranks));

	for (size_t i = 1; i < count; i++)
		ranked[i] =
			(struct ranked){&profile->frames[i], (uint32_t)i, 0};
	qsort(ranked + 1, count - 1, sizeof(*ranked), compare_names);
	for (size_t i = 1; i < count; i++) {
		bool same = merge == VIEW_BY_NAME && i > 1 &&
		            strcmp(ranked[i].frame->name,
		                   ranked[i - 1].frame->name) == 0;

		ranked[i].rank = same ? ranked[i - 1].rank : (uint32_t)i;
		ranks[ranked[i].index] = ranked[i].rank;
	}
	free(ranked);
	return ranks;
}

static void add_counts(struct draft *drafts, const uint32_t *draft_of,
                       const struct profile *profile)
{
	for (size_t i = 0; i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_tag *tag = &profile->tags[count->tag];
		struct draft *draft = &drafts[draft_of[count->node]];

		draft->self += count->samples;
		draft->by_state[tag->state] += count->samples;
		if (profile->new_from > 0 && tag->dump >= profile->new_from)
			draft->new_self += count->samples;
	}
}

/* Drafts without a sample on them are not shown: filters leave some. */
static void sum_drafts(struct draft *drafts, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		drafts[i].total += drafts[i].self;
		if (i > 0)
			drafts[drafts[i].parent].total += drafts[i].total;
	}
}

/* Drafts with equal frames under one parent are merged; parents stay before
 * their children. */
static struct draft *draft_nodes(const struct profile *profile,
                                 enum stack_view_merge merge, size_t *count)
{
	uint32_t *ranks = rank_frames(profile, merge);
	uint32_t *draft_of =
		memory_zeroed(profile->node_count, sizeof(*draft_of));
	struct draft *drafts =
		memory_zeroed(profile->node_count, sizeof(*drafts));
	struct id_map known = {0};

	*count = 0;
	for (size_t i = 0; i < profile->node_count; i++) {
		const struct profile_node *node = &profile->nodes[i];
		uint32_t parent = i > 0 ? draft_of[node->parent] : 0;
		uint32_t rank = ranks[node->frame];
		bool is_new;
		uint32_t at = *id_map_add(&known, parent, rank,
		                          (uint32_t)*count, &is_new);
		struct draft *draft = &drafts[at];

		if (is_new) {
			++*count;
			draft->parent = parent;
			draft->rank = rank;
			draft->frame = node->frame;
		}
		draft_of[i] = at;
	}
	add_counts(drafts, draft_of, profile);
	sum_drafts(drafts, *count);
	id_map_free(&known);
	free(draft_of);
	free(ranks);
	return drafts;
}

/* A draft as a child of its parent. */
struct child {
	uint32_t parent;
	uint32_t rank;
	uint32_t draft;
};

static int compare_children(const void *left, const void *right)
{
	const struct child *a = left;
	const struct child *b = right;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* All drafts but the root and those without samples, those of one parent side
 * by side and in order. */
static struct child *sort_children(const struct draft *drafts, size_t count,
                                   size_t *child_count)
{
	struct child *children = memory_zeroed(count, sizeof(*children));

	*child_count = 0;
	for (size_t i = 1; i < count; i++)
		if (drafts[i].total > 0)
			children[(*child_count)++] = (struct child){
				drafts[i].parent, drafts[i].rank, (uint32_t)i};
	qsort(children, *child_count, sizeof(*children), compare_children);
	return children;
}

static void fill_entry(struct stack_entry *entry, const struct draft *draft,
                       const struct profile *profile)
{
	entry->frame = &profile->frames[draft->frame];
	entry->name = draft->rank;
	entry->self = draft->self;
	entry->total = draft->self;
	entry->new_self = draft->new_self;
	entry->new_total = draft->new_self;
	memcpy(entry->by_state, draft->by_state, sizeof(entry->by_state));
}

/* Walks the tree without recursion: stacks can be deep. */
static void order_entries(struct stack_view *view,
                          const struct profile *profile,
                          const struct draft *drafts)
{
	size_t child_count;
	struct child *children =
		sort_children(drafts, view->count, &child_count);
	/* Of each draft: the place of its next child, and its entry. */
	size_t *next = memory_zeroed(view->count, sizeof(*next));
	uint32_t *entry_of = memory_zeroed(view->count, sizeof(*entry_of));
	uint32_t filled = 1;
	uint32_t at = 0;

	for (size_t i = child_count; i-- > 0;)
		next[children[i].parent] = i;
	fill_entry(&view->entries[0], &drafts[0], profile);
	view->entries[0].frame = NULL;
	while (child_count > 0) {
		size_t place = next[at];

		if (place == child_count || children[place].parent != at) {
			if (at == 0)
				break;
			at = drafts[at].parent;
			continue;
		}
		next[at]++;

		uint32_t child = children[place].draft;
		struct stack_entry *entry = &view->entries[filled];
		fill_entry(entry, &drafts[child], profile);
		entry->parent = entry_of[at];
		entry->depth = view->entries[entry->parent].depth + 1;
		if (entry->depth > view->depth)
			view->depth = entry->depth;
		entry_of[child] = filled++;
		at = child;
	}
	view->count = filled;
	free(children);
	free(next);
	free(entry_of);
}

static void sum_totals(struct stack_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		view->entries[i].end = (uint32_t)i + 1;
	for (size_t i = view->count; i-- > 1;) {
		const struct stack_entry *entry = &view->entries[i];
		struct stack_entry *parent = &view->entries[entry->parent];

		if (entry->end > parent->end)
			parent->end = entry->end;
		parent->total += entry->total;
		parent->new_total += entry->new_total;
		for (size_t state = 0; state < STATE_COUNT; state++)
			parent->by_state[state] += entry->by_state[state];
	}
}

void stack_view_open(struct stack_view *view, const struct profile *profile,
                     enum stack_view_merge merge)
{
	*view = (struct stack_view){0};

	struct draft *drafts = draft_nodes(profile, merge, &view->count);
	view->entries = memory_zeroed(view->count, sizeof(*view->entries));
	order_entries(view, profile, drafts);
	free(drafts);
	sum_totals(view);
}

void stack_view_close(struct stack_view *view)
{
	free(view->entries);
	*view = (struct stack_view){0};
}

const struct stack_entry **stack_view_path(const struct stack_view *view)
{
	return memory_zeroed(view->depth + 1,
	                     sizeof(const struct stack_entry *));
}
