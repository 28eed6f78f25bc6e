// SPDX-License-Identifier: MIT
/*
 * Names for perf: keeps the map file and the jitdump of this process true. What
 * the VM's thread finds out about machine code is handed over in records, and
 * the writer thread makes lines and objects of it.
 *
 * Locks of its own: all but perf_names_push() may wait for a disk. Never in the
 * signal handler.
 */
#ifndef LIB_PERF_NAMES_H
#define LIB_PERF_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum perf_names_kind {
	PERF_NAMES_OFF = 0,
	PERF_NAMES_MAP,     /* the map file, a line a trace */
	PERF_NAMES_LINES,   /* the map file, traces by their Lua lines */
	PERF_NAMES_JITDUMP, /* the map file and a jitdump */
};

/* "map", "lines" or "jitdump"; PERF_NAMES_OFF for anything else. */
enum perf_names_kind perf_names_find_kind(const char *name);

/* Rules in a jitdump by which perf finds the callers of traces. */
enum perf_names_unwind {
	PERF_NAMES_UNWIND_MAPPED = 0, /* every perf reads them; for that new
	                               * traces have PERF_NAMES_ROOM_BYTES free
	                               * behind them, which writes to the VM */
	PERF_NAMES_UNWIND_FILE,       /* perf with libdw reads them */
	PERF_NAMES_UNWIND_OFF,
};

/* "mapped", "file" or "off"; -1 for anything else. */
int perf_names_find_unwind(const char *name);

enum code_kind {
	CODE_TRACE,
	CODE_EXITS, /* what traces leave through, shared by them */
	CODE_FLUSH, /* all code of the owner is gone; no other field counts */
};

struct code_line {
	uint64_t address; /* from here on */
	uint32_t line;    /* 0 unknown */
	uint32_t chunk_bytes;
	const char *chunk; /* raw chunk name, within the record */
};

/* One piece of machine code, in one block of memory. */
struct code_record {
	struct code_record *next; /* in the queue */
	enum code_kind kind;
	uint64_t owner;   /* whose it is: a number for each VM */
	uint64_t time_ns; /* CLOCK_MONOTONIC, before the code first ran */
	uint32_t thread_id;
	uint32_t trace_number; /* CODE_TRACE */
	uint64_t address;
	uint32_t bytes;
	uint32_t frame_bytes; /* to the caller's stack pointer, 0 unknown */
	bool has_room;        /* of PERF_NAMES_ROOM_BYTES behind the code */
	uint64_t area_start;  /* of the memory that the code shares */
	uint64_t area_end;
	const uint8_t *contents; /* bytes of them */
	struct code_line start;  /* CODE_TRACE: where the trace starts */
	const struct code_line *lines;
	size_t line_count;
};

/* Of a jitdump, so that callers of the code are found by every perf. */
#define PERF_NAMES_ROOM_BYTES 80

struct perf_names; /* perf_names.c */

struct perf_names_options {
	enum perf_names_kind kind;
	enum perf_names_unwind unwind; /* PERF_NAMES_JITDUMP */
	const char *directory;         /* of the jitdump, NULL: /tmp */
};

/* Names for perf outlive a session: perf reads them when the report runs. Opens
 * the files of this process, or goes on with them. NULL with the reason in
 * *error. */
struct perf_names *perf_names_open(const struct perf_names_options *options,
                                   struct error *error);

/* Are new traces to have room behind them? */
bool perf_names_want_room(const struct perf_names *names);

/* Hands over a record made by malloc(). Waits for no disk, but in a child of a
 * fork, which has no writer thread. */
void perf_names_push(struct perf_names *names, struct code_record *record);

/* Machine code is going to change. In a child of a fork perf then asks for the
 * child's own files, even about code that is the parent's. Costs nothing else.
 */
void perf_names_wake(struct perf_names *names);

/* What was handed over becomes lines and objects. */
void perf_names_drain(struct perf_names *names);

/* Addresses that stand for something else; file is NULL for what has no lines,
 * else the range has an address for an unknown line, and one for each line from
 * first_line on. */
void perf_names_add_range(struct perf_names *names, uint64_t address,
                          uint64_t bytes, const char *name, size_t name_bytes,
                          const char *file, uint32_t first_line);

void perf_names_flush(struct perf_names *names);

/* The file that could not be written whole, NULL if all is well. The next
 * perf_names_open() starts that one afresh. */
const char *perf_names_failed(struct perf_names *names);

/* Around fork(2). The child's own files are created when there is something to
 * say: most children only run another program. */
void perf_names_before_fork(struct perf_names *names);
void perf_names_in_parent(struct perf_names *names);
void perf_names_in_child(struct perf_names *names);

#endif
