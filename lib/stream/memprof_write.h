// SPDX-License-Identifier: MIT
/*
 * Encoder of a memprof dump. Symbols, stacks, losses and the end are written by
 * the functions of sysprof_write.h and call_tree.h, which take the same
 * encoder; this adds what only this kind of dump has.
 *
 * Runs on the writer thread. Allocates nothing.
 */
#ifndef STREAM_MEMPROF_WRITE_H
#define STREAM_MEMPROF_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memprof_format.h"
#include "sysprof_write.h"

/* As sysprof_encoder_open(). */
void memprof_encoder_open(struct sysprof_encoder *encoder, uint8_t *buffer,
                          size_t capacity, byte_output_flusher flusher,
                          void *context);

struct memprof_session_facts {
	uint64_t pid;
	uint64_t vm_number;
	uint64_t sample_bytes; /* 0: every event is written */
	bool stacks;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	const char *vm;     /* as in struct session_facts */
	const char *writer; /* product and version */
};

void memprof_write_session(struct sysprof_encoder *encoder,
                           const struct memprof_session_facts *facts);

struct memprof_context {
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t coroutine; /* address, 0: none */
	uint64_t trace_number;
};

void memprof_write_context(struct sysprof_encoder *encoder,
                           const struct memprof_context *context);
void memprof_write_event_facts(struct sysprof_encoder *encoder,
                               uint32_t leaf_node, uint8_t flags);

struct memprof_event_fields {
	enum memprof_event event; /* not MEMPROF_SYMBOL */
	enum memprof_source source;
	uint64_t source_value; /* prototype, C function or trace number */
	uint32_t line;         /* MEMPROF_LUA */
	uint64_t old_address, old_bytes;
	uint64_t new_address, new_bytes;
};

void memprof_write_event(struct sysprof_encoder *encoder,
                         const struct memprof_event_fields *fields);
void memprof_write_session_end(struct sysprof_encoder *encoder,
                               uint64_t stop_monotonic_ns, uint64_t event_count,
                               uint64_t lost_count);

#endif
