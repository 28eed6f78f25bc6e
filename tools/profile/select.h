// SPDX-License-Identifier: MIT
/*
 * Questions to a profile: makes another one with the stacks and frames that
 * were asked for. Works on distinct stacks; what needs single samples (time,
 * threads) is asked while a dump is read, see load.h.
 */
#ifndef PROFILE_SELECT_H
#define PROFILE_SELECT_H

#include <regex.h>

#include "profile.h"

enum select_lines {
	LINES_NONE, /* a Lua function is one frame */
	LINES_KEEP, /* one a line, of the same name */
	LINES_LEAF, /* innermost frames by line, with the line in the name */
	LINES_ALL,  /* all frames likewise */
};

enum select_side {
	SIDE_BOTH,
	SIDE_GUEST, /* Lua functions, and C functions that Lua called */
	SIDE_HOST,  /* native code, these C functions included */
};

/* What stacks can be parted by: a frame below their outermost one. */
enum select_group {
	GROUP_PROCESS,
	GROUP_THREAD,
	GROUP_VM,
	GROUP_COROUTINE,
	GROUP_LABEL,
	GROUP_STATE,
	GROUP_COUNT
};

/* Kind of the frames that part stacks; beyond enum frame_kind. */
#define FRAME_GROUP 6

/* A zeroed one selects everything, functions without their lines. */
struct selection {
	enum select_lines lines;
	enum select_side side;
	const regex_t *include; /* stacks with such a frame; NULL: all */
	const regex_t *exclude; /* no stacks with such a frame; NULL: none */
	/* Samples with such a label, which is "" if they have none. NULL: all.
	 * Needs load_options.labels. */
	const regex_t *label;
	/* Stacks from this frame on, others are left out: its whole name, or
	 * what is before the first space. NULL: from the root. */
	const char *root;
	enum select_group groups[GROUP_COUNT];
	size_t group_count;
	/* Smaller subtrees become one frame "[less than …]". 0: none. */
	double prune_percent;
};

/* selected is opened; close both. */
void profile_select(struct profile *selected, const struct profile *all,
                    const struct selection *selection);

#endif
