// SPDX-License-Identifier: MIT
/*
 * Reader of sysprof and memprof dumps, record by record, in one pass: from files and
 * pipes. Knows the encoding, not what it means.
 *
 * Reads symbol tables of version 1 to 3 and streams of version 1 and 2.
 */
#ifndef PROFILE_DUMP_READER_H
#define PROFILE_DUMP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stream/codec.h"
#include "stream/memprof_format.h"
#include "stream/sysprof_format.h"

/* More frames than a Lua or native stack can have are not believed. */
#define DUMP_FRAMES_MAX (1u << 18)
/* Bytes that are read at once. */
#define DUMP_CHUNK_BYTES (128u << 10)
/* Longer names are cut. */
#define DUMP_STRING_BYTES_MAX (10u << 20)

enum dump_record_kind {
	DUMP_PROTO,
	DUMP_C_SYMBOL,
	DUMP_TRACE,
	DUMP_EXTENSION,
	DUMP_SAMPLE,       /* with frames */
	DUMP_TRACE_SAMPLE, /* in STATE_TRACE */
	DUMP_EVENT,        /* of a memory profile */
};

/* An event of a memory profile, as it is in the dump. */
struct dump_event {
	enum memprof_event event; /* not MEMPROF_SYMBOL */
	enum memprof_source source;
	uint64_t value; /* prototype, C function or trace number */
	uint64_t line;  /* MEMPROF_LUA: that runs */
	uint64_t old_address, old_bytes; /* 0: none */
	uint64_t new_address, new_bytes; /* 0: none */
};

/* Frame of the guest part of a sample, as it is in the dump. */
struct dump_guest {
	uint8_t type;   /* enum guest_frame_type */
	uint64_t value; /* prototype, C function or fast function number */
	uint64_t line;  /* GUEST_LUA: first line of the prototype */
};

/* One record. Pointers are valid until the next one is read. */
struct dump_record {
	enum dump_record_kind kind;
	uint64_t offset; /* in the file, of its header byte */

	uint64_t number;  /* DUMP_TRACE, DUMP_TRACE_SAMPLE: of the trace */
	uint64_t address; /* symbols, DUMP_TRACE_SAMPLE: prototype or code */
	uint64_t line;    /* DUMP_PROTO, _TRACE_SAMPLE: first; _TRACE: start */

	const char *text; /* chunk name, C symbol, or extension items */
	size_t text_bytes;
	size_t readable_bytes; /* from text on, text_bytes or more */
	uint64_t text_offset;  /* in the file, of the first byte of text */

	struct dump_event event; /* DUMP_EVENT */

	enum sample_state state;        /* of a sample */
	const struct dump_guest *guest; /* innermost first */
	size_t guest_count;
	const uint64_t *host; /* innermost first */
	size_t host_count;
};

struct dump_reader {
	struct byte_input in;
	uint8_t *chunk;        /* of in */
	const char *file_name; /* for messages */
	/* Set by the caller before opening: which kind of dump it wants. */
	bool wants_memprof;
	bool in_symtab;
	uint8_t table_version;
	uint8_t stream_version;
	bool ended; /* the end record was read */
	/* Set by the caller before a sample whose stacks it has already: they
	 * are checked, but the record need not have them. */
	bool skip_stacks;

	struct byte_string text;
	struct dump_guest *guest;
	size_t guest_capacity;
	uint64_t *host;
	size_t host_capacity;

	char error[512]; /* file, offset, what was expected and what was got */
};

enum dump_read {
	DUMP_READ_RECORD,
	DUMP_READ_END,
	DUMP_READ_FAILED, /* reader->error tells */
};

/* The reader must be zeroed. The file stays the caller's. False: error. */
bool dump_reader_open(struct dump_reader *reader, FILE *file,
                      const char *file_name);
bool dump_reader_open_input(struct dump_reader *reader, byte_input_reader read,
                            void *context, const char *file_name);
void dump_reader_close(struct dump_reader *reader);
enum dump_read dump_reader_next(struct dump_reader *reader,
                                struct dump_record *record);

/* Bytes behind the end record? */
bool dump_reader_has_trailing(struct dump_reader *reader);

/* Sets reader->error: "FILE: at offset 12 (0xc): expected …, got …" and returns
 * false. The format is that of what comes after the offset. */
bool dump_reader_fail(struct dump_reader *reader, uint64_t offset,
                      const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
