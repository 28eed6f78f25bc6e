// SPDX-License-Identifier: MIT
/*
 * Profile: what the outputs work on. A table of frames, a tree of them, and
 * counts of samples at the node of their leaf frame. Its memory grows with the
 * distinct stacks, not with the samples (but for the moments, if asked for).
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "id_map.h"
#include "name_table.h"
#include "stream/sysprof_format.h"

/* Reasons of lost samples that are told apart, also those of later versions. */
#define PROFILE_LOST_REASONS 16

/* Index of the root, which is no frame, among the nodes. */
#define PROFILE_ROOT 0

/* A flag beside FRAME_FLAG_COMPILED: native code of the kernel. */
#define PROFILE_FLAG_KERNEL 0x20

/* One function, or one of its lines. Two frames may have the same name, if a
 * function runs interpreted and compiled. */
struct profile_frame {
	const char *name;    /* spelled by frame_name.h; raw in compat output */
	const char *file;    /* of a Lua function, spelled likewise; else "" */
	uint32_t first_line; /* where it is defined; 0: not known, or none */
	uint32_t line;       /* that runs; 0: not known, or not told apart */
	uint64_t address;    /* of native code that a file names; 0: none, or
	                      * load_options.native_addresses is not set */
	uint8_t kind;        /* enum frame_kind */
	uint8_t flags;       /* FRAME_FLAG_*, PROFILE_FLAG_KERNEL */
};

/* Where a frame is, beyond its name. */
struct profile_source {
	const char *file;
	size_t file_bytes;
	uint32_t first_line;
	uint32_t line;
	uint64_t address;
};

/* One frame on top of a stack. */
struct profile_node {
	uint32_t parent; /* index of the caller's node, always a smaller one */
	uint32_t frame;  /* index in frames */
	uint32_t last_count; /* index in counts, more 1, of the last sample that
			      * ended here; 0: none did */
};

/* What a sample has beside its stack. */
struct profile_tag {
	uint64_t
		thread_id; /* this and the next three: 0 if there is none, or */
	uint64_t vm_number; /* if load_options.labels is not set */
	uint64_t coroutine; /* address */
	const char *label;  /* that misc.sysprof.label() gave; NULL: none */
	uint32_t trace;     /* frame that names the trace it was in; 0: none */
	uint32_t dump;      /* index in dumps */
	uint8_t state;      /* enum sample_state */
};

/* Samples with one stack and one tag. */
struct profile_count {
	uint32_t node;
	uint32_t tag; /* index in tags */
	uint64_t samples;
};

/* One sample in time, if load_options.moments asks for them. */
struct profile_moment {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t node;
	uint32_t tag;
	uint32_t samples; /* that it stands for: more than 1 where the interval
	                   * was lengthened */
};

/* Machine code of a trace, from a moment on. */
struct profile_code {
	uint64_t time_ns; /* of the sample before it was first seen */
	uint64_t start;
	uint64_t bytes;
	uint32_t trace; /* frame that names the trace */
};

/* A Lua function in the memory of the process, from a moment on. */
struct profile_bytecode {
	uint64_t time_ns; /* of the sample before it was first seen */
	uint64_t start;   /* of its prototype */
	uint64_t bytes;
	uint32_t frame; /* its frame without a line */
};

#define PROFILE_BUILD_ID_BYTES 20

/* Code of a file that frames have addresses in. */
struct profile_mapping {
	uint64_t time_ns; /* of the sample before it */
	uint64_t start;
	uint64_t bytes;
	uint64_t file_offset;
	uint8_t build_id[PROFILE_BUILD_ID_BYTES];
	size_t build_id_bytes; /* 0: none that is known or fits */
	uint32_t dump;         /* index in dumps */
	bool is_used;          /* a frame is in it */
	const char *path;      /* where the file is now */
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

/* One dump that was read. */
struct profile_dump {
	const char *file_name;
	uint64_t pid; /* 0: not known */
	uint64_t sample_count;
};

/* What a dump without our extension does not tell: numbers of samples, but for
 * unplaced_count. */
struct profile_gaps {
	uint64_t joined_count;   /* whose stacks were joined by guess */
	uint64_t no_guest_count; /* whose Lua stack is not in the format */
	uint64_t trace_count;    /* in traces: only a function is known */
	uint64_t unplaced_count; /* C functions not found on a native stack */
	uint64_t no_facts_count; /* left out: a filter asks for what they do not
				  * have, such as their thread */
};

struct profile {
	struct profile_session session; /* of the dump that was read last */
	struct profile_dump *dumps;
	size_t dump_count;
	size_t dump_capacity;
	/* Comparison of two profiles: index of the first dump that belongs to
	 * the new one. 0: this is no comparison. */
	uint32_t new_from;

	struct profile_frame *frames; /* [0] is not used */
	size_t frame_count;
	size_t frame_capacity;
	struct profile_node *nodes; /* [PROFILE_ROOT] is the root */
	size_t node_count;
	size_t node_capacity;
	struct profile_tag *tags;
	size_t tag_count;
	size_t tag_capacity;
	struct profile_count *counts;
	size_t count_count;
	size_t count_capacity;
	struct profile_moment *moments;
	size_t moment_count;
	size_t moment_capacity;

	struct profile_code *codes; /* in time, if moments are asked for */
	size_t code_count;
	size_t code_capacity;

	struct profile_bytecode *bytecodes; /* likewise */
	size_t bytecode_count;
	size_t bytecode_capacity;

	/* In time, if load_options.native_addresses asks for them. */
	struct profile_mapping *mappings;
	size_t mapping_count;
	size_t mapping_capacity;

	uint64_t sample_count;
	uint64_t by_state[STATE_COUNT];      /* their sum is sample_count */
	uint64_t lost[PROFILE_LOST_REASONS]; /* by enum lost_reason */
	struct profile_gaps gaps;
	uint64_t left_out_max; /* most frames that one stack lacks, for it is
	                        * too deep */

	/* What tables show. */
	double min_percent; /* rows of less are left out */
	size_t row_limit;   /* at most so many; 0: all */
	bool is_live;       /* one table alone: it is shown again and again */
	const char *output_path; /* where it goes; NULL: standard output */

	struct name_table names;
	struct id_map sources;           /* file, first line -> number */
	struct id_map frames_by_facts;   /* name, source, line, kind -> frame */
	struct id_map frames_by_address; /* address, name, kind -> frame */
	struct id_map nodes_by_parent;   /* parent and frame -> node */
	struct id_map owners;            /* thread and VM -> number */
	struct id_map places;            /* trace, dump, state -> number */
	struct id_map coroutines;        /* coroutine, owner -> number */
	struct id_map labelled;          /* label, coroutine number -> number */
	struct id_map tags_by_facts;     /* labelled number, place -> tag */
	struct id_map counts_by_node;    /* node and tag -> count */
};

void profile_open(struct profile *profile);
void profile_close(struct profile *profile);

/* Index of the frame with these properties, which is added if it is new. A
 * name ends at its first NUL. source may be NULL. */
uint32_t profile_frame(struct profile *profile, enum frame_kind kind,
                       uint8_t flags, const char *name, size_t name_bytes);
uint32_t profile_frame_at(struct profile *profile, enum frame_kind kind,
                          uint8_t flags, const char *name, size_t name_bytes,
                          const struct profile_source *source);
/* The same frame in another profile. */
uint32_t profile_copy_frame(struct profile *profile,
                            const struct profile_frame *frame);
/* Index of the node, which is added if it is new. */
uint32_t profile_node(struct profile *profile, uint32_t parent, uint32_t frame);
/* Index of the tag, which is added if it is new; its label is copied. */
uint32_t profile_tag(struct profile *profile, const struct profile_tag *tag);
/* Adds a copy. */
void profile_add_mapping(struct profile *profile,
                         const struct profile_mapping *mapping);
/* The only string of the profile that is equal to this one. */
const char *profile_string(struct profile *profile, const char *string);
/* Index of a new dump. */
uint32_t profile_dump(struct profile *profile, const char *file_name);
void profile_add_samples(struct profile *profile, uint32_t node, uint32_t tag,
                         uint64_t samples);
/* One sample of a state, with no other facts. */
void profile_count(struct profile *profile, uint32_t node,
                   enum sample_state state);

uint64_t profile_lost_count(const struct profile *profile);
/* Samples with a marker: their stacks are not whole. */
uint64_t profile_marked_count(const struct profile *profile);

#endif
