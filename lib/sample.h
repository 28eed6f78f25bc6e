// SPDX-License-Identifier: MIT
/*
 * What the signal handler hands to the writer thread: the records of a ring.
 * Both run in one process, so fields are native; nothing of this reaches a
 * file as it is. Every record is a multiple of 8 bytes.
 */
#ifndef LIB_SAMPLE_H
#define LIB_SAMPLE_H

#include <stdint.h>

#include "stream/sysprof_format.h"

/* Most frames of one sample; deeper stacks keep both ends (MARKER_TRUNCATED). */
#define SAMPLE_FRAMES_MAX 512

/* One frame of a merged stack. Which fields mean what depends on the kind:
 *
 *   kind          value                              line
 *   FRAME_HOST    the interrupted instruction, or    0
 *                 for callers return address - 1
 *   FRAME_LUA     Lua symbol id                      current line, 0 unknown
 *   FRAME_C       entry address of the C function    0
 *   FRAME_FAST    fast function number               0
 *   FRAME_MARKER  enum frame_marker                  how many frames
 */
struct frame {
	uint64_t value;
	uint32_t line;
	uint8_t kind;  /* enum frame_kind */
	uint8_t flags; /* FRAME_FLAG_* */
	uint16_t unused;
};

enum ring_record_kind {
	RING_SAMPLE = 1,
	RING_LUA_SYMBOL = 2,
	RING_TRACE_SYMBOL = 3,
};

/* First member of every record. */
struct ring_record {
	uint32_t bytes; /* of the whole record, this header included */
	uint32_t kind;  /* enum ring_record_kind */
};

/* RING_SAMPLE */
struct sample {
	struct ring_record record;
	uint64_t time_ns;   /* CLOCK_MONOTONIC */
	uint64_t coroutine; /* address of the running lua_State, 0: none */
	uint32_t thread_id;
	uint32_t vm_number;    /* 0: no VM on the stack */
	uint32_t trace_number; /* STATE_TRACE: the running trace, else 0 */
	uint32_t trace_symbol; /* STATE_TRACE: Lua symbol id of the prototype
	                        * that the trace starts in, 0: not known */
	uint16_t frame_count;
	uint8_t state;   /* enum sample_state */
	uint8_t vm_part; /* enum vm_part, of the innermost Lua function */
	uint32_t label;  /* of the innermost coroutine that has one, 0: none */
	struct frame frames[]; /* frame_count, leaf first */
};

/*
 * RING_LUA_SYMBOL: a prototype that is seen for the first time, or whose
 * address now holds another one. Precedes the first sample that names its id.
 */
struct lua_symbol {
	struct ring_record record;
	uint64_t prototype;     /* address */
	uint64_t arena_address; /* of its range in the address arena, 0: none */
	uint32_t id;            /* 1, 2, 3, … within a sampler */
	uint32_t first_line;    /* 0 for a main chunk; may be 2^32-1 */
	uint32_t line_count;    /* lines after the first one */
	uint32_t chunk_bytes;   /* length of the chunk name */
	uint32_t call_name_bytes; /* 0: not known by which name it was called */
	uint8_t call_name_is_local; /* as in struct call_name */
	uint8_t stripped; /* 1: no debug information, first_line is 0 */
	uint16_t unused;
	uint32_t prototype_bytes; /* bytecode included, 0: not known */
	char chunk[]; /* not terminated; the call name follows, likewise */
};

/* RING_TRACE_SYMBOL: a trace seen for the first time, or a number in new use.
 * Precedes the first sample of it. */
struct trace_symbol {
	struct ring_record record;
	uint32_t trace_number;
	uint32_t lua_symbol; /* id of the prototype it starts in */
	uint32_t start_line;
	uint32_t code_bytes; /* of its machine code, 0: not known */
	uint64_t code;       /* address of that */
};

#endif
