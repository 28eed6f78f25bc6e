// SPDX-License-Identifier: MIT
/*
 * Profile: what the outputs work on. A table of frames, and a tree of them
 * with the samples counted at the node of their leaf frame. Its memory grows
 * with the distinct stacks, not with the samples.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "id_map.h"
#include "stream/sysprof_format.h"

/* Reasons of lost samples that are told apart, also those of later versions. */
#define PROFILE_LOST_REASONS 16

/* Index of the root, which is no frame, among the nodes. */
#define PROFILE_ROOT 0

/* One function, as all outputs name it. Two frames may have the same name, if
 * a function runs interpreted and compiled. */
struct profile_frame {
	char *name; /* spelled by frame_name.h; raw in the compat output */
	uint32_t same_hash; /* next frame with the same hash, 0: none */
	uint8_t kind;       /* enum frame_kind */
	uint8_t flags;      /* FRAME_FLAG_* */
};

/* One frame on top of a stack. */
struct profile_node {
	uint32_t parent; /* index of the caller's node, always a smaller one */
	uint32_t frame;  /* index in frames */
	uint64_t samples[STATE_COUNT]; /* that ended here, by VM state */
};

/* ITEM_SESSION and ITEM_END. */
struct profile_session {
	bool known; /* the dump has our extension */
	bool ended; /* ITEM_END was read: the fields from stop_ns on are set */
	uint64_t version;
	uint64_t pid;
	uint64_t mode;
	uint64_t interval_ns;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	char *clock;
	char *vm;
	char *writer;
	uint64_t stop_monotonic_ns;
	uint64_t sample_count;
	uint64_t lost_count;
};

/* What a dump without our extension does not tell: numbers of samples, but for
 * unplaced_count. */
struct profile_gaps {
	uint64_t joined_count;   /* whose stacks were joined by guess */
	uint64_t no_guest_count; /* whose Lua stack is not in the format */
	uint64_t trace_count;    /* in traces: only a function is known */
	uint64_t unplaced_count; /* C functions not found on a native stack */
};

struct profile {
	struct profile_session session;

	struct profile_frame *frames; /* [0] is not used */
	size_t frame_count;
	size_t frame_capacity;
	struct profile_node *nodes; /* [PROFILE_ROOT] is the root */
	size_t node_count;
	size_t node_capacity;

	uint64_t sample_count;
	uint64_t by_state[STATE_COUNT];      /* their sum is sample_count */
	uint64_t lost[PROFILE_LOST_REASONS]; /* by enum lost_reason */
	struct profile_gaps gaps;

	struct id_map frames_by_hash;  /* hash of the name and kind -> frame */
	struct id_map nodes_by_parent; /* parent and frame -> node */
};

void profile_open(struct profile *profile);
void profile_close(struct profile *profile);

/* Index of the frame with these properties, which is added if it is new. A
 * name ends at its first NUL. */
uint32_t profile_frame(struct profile *profile, enum frame_kind kind,
                       uint8_t flags, const char *name, size_t name_bytes);
/* Index of the node, which is added if it is new. */
uint32_t profile_node(struct profile *profile, uint32_t parent, uint32_t frame);
void profile_count(struct profile *profile, uint32_t node,
                   enum sample_state state);

uint64_t profile_lost_count(const struct profile *profile);
/* Samples with a marker: their stacks are not whole. */
uint64_t profile_marked_count(const struct profile *profile);

#endif
