// SPDX-License-Identifier: MIT
/*
 * The stacks of a profile in the order in which outputs show them: each parent
 * before its children, children by name. Most outputs are one walk over it.
 */
#ifndef PROFILE_STACK_VIEW_H
#define PROFILE_STACK_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

/* One frame with all that stands on it. */
struct stack_entry {
	const struct profile_frame *frame; /* NULL: the root */
	uint32_t parent; /* index of the entry below, the root's is 0 */
	uint32_t depth;  /* 0: the root, 1: an outermost frame */
	uint32_t end;    /* index behind the last entry that stands on it */
	uint32_t name;   /* below frame_count of the profile; with VIEW_BY_NAME
			  * equal names have equal numbers */
	uint64_t self;   /* samples that end here */
	uint64_t total;  /* self, and those of all that stands on it */
	/* Samples of total by VM state. */
	uint64_t by_state[STATE_COUNT];
	/* Of a comparison (profile.new_from): those of the new profile. */
	uint64_t new_self;
	uint64_t new_total;
};

struct stack_view {
	struct stack_entry *entries; /* [0] is the root */
	size_t count;
	uint32_t depth; /* the greatest one */
};

enum stack_view_merge {
	VIEW_BY_FRAME, /* frames of one name but different kind stand apart */
	VIEW_BY_NAME,  /* they are one */
};

void stack_view_open(struct stack_view *view, const struct profile *profile,
                     enum stack_view_merge merge);
void stack_view_close(struct stack_view *view);

/* Array of view->depth + 1 entries to keep the stack of a walk in: the caller
 * sets path[entry->depth] = entry. Free with free(). */
const struct stack_entry **stack_view_path(const struct stack_view *view);

#endif
