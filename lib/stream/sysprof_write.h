// SPDX-License-Identifier: MIT
/*
 * Encoder of a sysprof dump: symbol table, records, extension.
 *
 * Runs on the writer thread; never in the signal handler (the flusher may do
 * I/O). Allocates nothing. The functions return nothing: whether the stream
 * still takes bytes is asked once in a while with sysprof_encoder_is_open(),
 * and writing to one that does not is harmless.
 *
 * Order of a dump:
 *
 *   sysprof_encoder_open
 *   sysprof_write_prologue            or, with a symbol table:
 *     sysprof_write_symtab_begin, proto/c_symbol/trace, _stream_begin
 *   sysprof_write_session             extension
 *   for each sample:
 *     sysprof_write_proto, _c_symbol, _trace       names new since the last
 *     sysprof_write_lua_symbol, _fast_symbol       the same, extension
 *     sysprof_write_frame (call_tree.h), _sample_facts  extension
 *     sysprof_write_sample or sysprof_write_trace_sample
 *   sysprof_write_lost, sysprof_write_session_end  extension
 *   sysprof_write_end
 *
 * A name precedes the first node or sample that needs it: names are resolved
 * in stream order. Extension items are collected and go out as one record
 * before the next record of another kind, so their order is kept.
 */
#ifndef STREAM_SYSPROF_WRITE_H
#define STREAM_SYSPROF_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec.h"
#include "sysprof_format.h"

/* Longer strings in extension items are cut to this many bytes; of a path
 * ("@…") the end is kept behind the '@'. */
#define EXTENSION_STRING_BYTES_MAX 1024
#define EXTENSION_BUFFER_BYTES     8192

/* The headers of one kind of stream: sysprof's, or memprof's. */
struct stream_kind {
	const char *magic;
	uint8_t version;
	uint8_t new_proto, new_c, new_trace; /* symbols behind the table */
	uint8_t end;
};

struct sysprof_encoder {
	struct byte_output out;
	const struct stream_kind *kind;
	bool in_symtab; /* between _symtab_begin and _stream_begin */
	uint64_t
		last_time_ns; /* of the sample before, or the session's start */
	size_t item_bytes;    /* extension items that wait in items */
	uint8_t items[EXTENSION_BUFFER_BYTES];
};

/* buffer: any size from 1 byte up, owned by the caller until the end. */
void sysprof_encoder_open(struct sysprof_encoder *encoder, uint8_t *buffer,
                          size_t capacity, byte_output_flusher flusher,
                          void *context);

/* False once a write was short (encoder->out.failed) or the flusher ended the
 * stream (encoder->out.ended). */
bool sysprof_encoder_is_open(const struct sysprof_encoder *encoder);

/* Hands everything written so far to the flusher, whole records only. False
 * as sysprof_encoder_is_open(). */
bool sysprof_encoder_flush(struct sysprof_encoder *encoder);

/* ---- the known format -------------------------------------------------- */

/* Empty symbol table and the header of the stream. */
void sysprof_write_prologue(struct sysprof_encoder *encoder);
void sysprof_write_symtab_begin(struct sysprof_encoder *encoder);
void sysprof_write_stream_begin(struct sysprof_encoder *encoder);

/* Symbols: records of the table before _stream_begin, of the stream after.
 * Lines of 2^31 and above are negative ones (built-in functions). */
void sysprof_write_proto(struct sysprof_encoder *encoder, uint64_t prototype,
                         const char *chunk, size_t chunk_bytes,
                         uint32_t first_line);
/* Nothing is written for EXTENSION_ADDRESS. */
void sysprof_write_c_symbol(struct sysprof_encoder *encoder, uint64_t address,
                            const char *name);
void sysprof_write_trace(struct sysprof_encoder *encoder, uint64_t trace_number,
                         uint64_t prototype, uint32_t start_line);

/* One frame of the guest part of a sample. */
struct guest_entry {
	uint64_t value;      /* prototype, C function address, fast number */
	uint32_t first_line; /* GUEST_LUA, else 0 */
	uint8_t type;        /* GUEST_LUA, GUEST_C, GUEST_FAST */
};

/*
 * A sample in any state but STATE_TRACE. Both lists are innermost first. The
 * guest part is left out where the state has none; host addresses of 0, which
 * would end the list, are left out too.
 */
void sysprof_write_sample(struct sysprof_encoder *encoder,
                          enum sample_state state,
                          const struct guest_entry *guest, size_t guest_count,
                          const uint64_t *host, size_t host_count);
/* Trace number 0, "not known", is written as UNKNOWN_TRACE. */
void sysprof_write_trace_sample(struct sysprof_encoder *encoder,
                                uint64_t trace_number, uint64_t prototype,
                                uint32_t first_line);

/* The end record, and everything to the flusher; as sysprof_encoder_flush(). */
bool sysprof_write_end(struct sysprof_encoder *encoder);

/* ---- the extension ----------------------------------------------------- */

struct session_facts {
	uint64_t pid;
	uint64_t mode; /* 0 D, 1 L, 2 C */
	uint64_t interval_ns;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	const char *clock;  /* sample_clock_name() */
	const char *vm;     /* such as "LuaJIT 2.1.0-beta3 x86-64 GC64" */
	const char *writer; /* product and version */
};

void sysprof_write_session(struct sysprof_encoder *encoder,
                           const struct session_facts *facts);

struct lua_symbol_facts {
	uint64_t id; /* from 1 */
	uint64_t prototype;
	uint32_t first_line; /* of 2^31 and above: negative */
	uint32_t line_count; /* lines after the first one */
	const char *chunk;   /* raw chunk name, chunk_bytes long */
	size_t chunk_bytes;
	const char *function;     /* its name, terminated; empty: not known */
	uint32_t prototype_bytes; /* bytecode included, 0: not known */
};

void sysprof_write_lua_symbol(struct sysprof_encoder *encoder,
                              const struct lua_symbol_facts *facts);
void sysprof_write_fast_symbol(struct sysprof_encoder *encoder, uint64_t number,
                               const char *name);

/* One frame of a merged stack. Same meaning as struct frame of the sampler:
 * value and line by kind, see ITEM_NODE; a marker's count goes into line. */
struct stack_node {
	uint64_t value;
	uint32_t line;
	uint8_t kind;  /* enum frame_kind */
	uint8_t flags; /* FRAME_FLAG_* */
};

/* The node gets the next number: the caller counts. call_tree.h does it all. */
void sysprof_write_node(struct sysprof_encoder *encoder, uint32_t parent,
                        const struct stack_node *node);
void sysprof_write_reset_nodes(struct sysprof_encoder *encoder);

struct sample_facts {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t thread_id;
	uint64_t vm_number; /* 0: none */
	uint64_t coroutine; /* address, 0: none */
	uint32_t leaf_node; /* 0: no frame at all */
};

/* About the sample record that is written next. */
void sysprof_write_sample_facts(struct sysprof_encoder *encoder,
                                const struct sample_facts *facts);

/* Of the samples of the coroutine that are written from here on. */
void sysprof_write_label(struct sysprof_encoder *encoder, uint64_t coroutine,
                         const char *label);

/* Code of an object file that is mapped. */
struct mapping_facts {
	uint64_t start, bytes;
	uint64_t file_offset;
	uint64_t file_address; /* of start, as the file counts addresses */
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: it has none */
	const char *path;      /* of the file, or "[vdso]" */
};

void sysprof_write_mapping(struct sysprof_encoder *encoder,
                           const struct mapping_facts *facts);

/* Machine code of the trace that was last written under this number. */
void sysprof_write_trace_code(struct sysprof_encoder *encoder,
                              uint64_t trace_number, uint64_t code,
                              uint64_t bytes);

/* total_count: samples lost for this reason since the start. */
void sysprof_write_lost(struct sysprof_encoder *encoder,
                        enum lost_reason reason, uint64_t total_count);
/* The thread is sampled by this interval from its next sample on. */
void sysprof_write_interval(struct sysprof_encoder *encoder, uint64_t thread_id,
                            uint64_t interval_ns);

void sysprof_write_session_end(struct sysprof_encoder *encoder,
                               uint64_t stop_monotonic_ns,
                               uint64_t sample_count, uint64_t lost_count);

#endif
