// SPDX-License-Identifier: MIT
/*
 * State of a load, shared by the files that do it: load.c (records without the
 * extension), extension.c (items), naming.c (symbols to frames).
 */
#ifndef PROFILE_LOADER_H
#define PROFILE_LOADER_H

#include "compat_join.h"
#include "dump_reader.h"
#include "join.h"
#include "load.h"
#include "symbolize.h"
#include "symbols.h"

/* What is known of a native address; see naming_host(). */
struct host_naming {
	struct join_host join;
	/* Frames of the functions that are inlined there, outermost first. */
	uint32_t inlined[SYMBOLIZE_FRAMES_MAX - 1];
	size_t inlined_count;
	enum compat_entry compat;
};

/* ITEM_SAMPLE. */
struct sample_item {
	bool known;    /* there is one for the next sample */
	uint32_t leaf; /* node of the profile */
	uint64_t time_ns;
	uint64_t thread_id;
	uint64_t vm_number;
	uint64_t coroutine;
};

struct loader {
	struct dump_reader reader;
	struct load_options options;
	struct profile *profile;
	struct symbols symbols;
	struct symbolizer *symbolizer; /* NULL: no mapping is known */

	/* Names already found; emptied when a symbol changes. */
	struct id_map host_cache; /* address -> index in hosts */
	struct host_naming *hosts;
	size_t host_count;
	size_t host_capacity;
	struct id_map proto_cache; /* prototype, first line -> frame */

	struct id_map trace_cache; /* trace number -> frame */

	/* The extension. */
	uint32_t *tree; /* node of the dump -> node of the profile; [0] root */
	size_t tree_count;
	size_t tree_capacity;
	struct sample_item item; /* about the next sample */
	uint64_t last_time_ns;   /* of the sample before, or the start */
	struct id_map weights;   /* thread -> what one of its samples counts,
	                          * where that is not 1 */
	struct id_map labels;    /* coroutine -> number of its label's name,
	                          * more 1; 0: none */
	uint64_t lost[PROFILE_LOST_REASONS];

	/* Items that only another kind of dump has; NULL: there are none. The
	 * input ends with the item; false: reader.error, or in->problem. */
	bool (*read_other_item)(struct loader *loader, uint8_t kind,
	                        struct byte_input *in);
	void *other_context; /* of whoever reads those items */

	/* Samples. */
	uint32_t dump;               /* index in the profile */
	uint64_t read_count;         /* those that a filter drops included */
	struct profile_tag last_tag; /* and its index */
	uint32_t last_tag_index;
	bool has_last_tag;

	/* Lists of one sample. */
	struct join join;
	struct join_guest *join_guest;
	size_t join_guest_capacity;
	struct join_host *join_host;
	size_t join_host_capacity;
	struct compat_join compat;
	struct compat_guest *compat_guest;
	size_t compat_guest_capacity;
	struct compat_host *compat_host;
	size_t compat_host_capacity;
};

/* load.c: ends what a zeroed loader has begun, and frees it. */
void loader_free(struct loader *loader);

/* extension.c: the items of one DUMP_EXTENSION record. False: reader->error. */
bool extension_read(struct loader *loader, const struct dump_record *record);

/* Node of the profile for a node of the dump. False: there is none. */
bool extension_find_node(const struct loader *loader, uint64_t number,
                         uint32_t *node);

/* naming.c: frames of the profile. Symbols that change are announced. */
void naming_forget_prototypes(struct loader *loader);
void naming_forget_hosts(struct loader *loader);
void naming_forget_traces(struct loader *loader);

void naming_add_mapping(struct loader *loader,
                        const struct code_mapping *mapping);
const struct host_naming *naming_host(struct loader *loader, uint64_t address);
/* The node of native code at the address, called by the parent. */
uint32_t naming_host_node(struct loader *loader, uint32_t parent,
                          uint64_t address);
/* A C function by its entry. */
uint32_t naming_c_function(struct loader *loader, uint64_t address);
uint32_t naming_fast(struct loader *loader, uint64_t number);
uint32_t naming_prototype(struct loader *loader, uint64_t address,
                          uint64_t first_line, uint8_t flags);
/* By id of the extension. */
uint32_t naming_lua(struct loader *loader, uint64_t id, uint64_t line,
                    uint8_t flags);
uint32_t naming_trace(struct loader *loader, uint64_t number);
uint32_t naming_marker(struct loader *loader, uint64_t marker);

/* The old parser's names. 0: not printed. */
uint32_t naming_compat_guest(struct loader *loader,
                             const struct dump_guest *guest);

#endif
