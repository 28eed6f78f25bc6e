// SPDX-License-Identifier: MIT
/*
 * The numbers of a sysprof dump: symbol table, stream, and our extension.
 * Shared by the encoder (in the profiled process) and the reader (tools/).
 * Values are part of the file format: never change one, only add.
 *
 * doc/dump-format.md tells the whole story; this header is its index.
 */
#ifndef STREAM_SYSPROF_FORMAT_H
#define STREAM_SYSPROF_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define SYMTAB_MAGIC        "ljs"
#define SYMTAB_VERSION      3
#define SYSPROF_MAGIC       "ljp"
#define SYSPROF_VERSION     2
#define STREAM_MAGIC_BYTES  3
#define STREAM_HEADER_BYTES 7 /* magic, version, three reserved zero bytes */

/* Record types of the symbol table: bits 0-1 of the header byte. */
enum symtab_record {
	SYMTAB_LUA = 0, /* U prototype address, STR chunk name, U first line */
	SYMTAB_C = 1,   /* U address, STR name */
	SYMTAB_TRACE = 2, /* U trace number, U prototype address, U line */
	SYMTAB_END = 0x80,
};

/*
 * VM state of a sample, which is also its record type in the stream. The
 * order is that of the counters in struct luam_Sysprof_Counters.
 */
enum sample_state {
	STATE_INTERP = 0,
	STATE_LFUNC = 1,
	STATE_FFUNC = 2,
	STATE_CFUNC = 3,
	STATE_GC = 4,
	STATE_EXIT = 5,
	STATE_RECORD = 6,
	STATE_OPT = 7,
	STATE_ASM = 8,
	STATE_TRACE = 9,
	STATE_COUNT
};

/* Only in these states does a sample have a guest part. */
static inline bool sample_state_has_guest(uint64_t state)
{
	return state == STATE_LFUNC || state == STATE_FFUNC ||
	       state == STATE_CFUNC;
}

/* Trace number of a sample in a trace that is not known. Not 0: that the parser
 * of Tarantool's LuaJIT does not read. Real numbers have 16 bits. */
#define UNKNOWN_TRACE UINT32_MAX

/* Records of the stream that are not samples. */
enum sysprof_record {
	SYSPROF_NEW_PROTO = 10, /* body as SYMTAB_LUA */
	SYSPROF_NEW_C = 11, /* body as SYMTAB_C; also carries the extension */
	SYSPROF_NEW_TRACE = 12, /* body as SYMTAB_TRACE */
	SYSPROF_END = 0x80,
};

/* Frame types of the guest part of a sample. */
enum guest_frame_type {
	GUEST_LUA = 1,  /* U prototype address, U first line of the prototype */
	GUEST_C = 2,    /* U address of the function */
	GUEST_FAST = 3, /* U fast function number */
	GUEST_BOTTOM = 0x80,
};

/*
 * The extension: a SYSPROF_NEW_C record whose address is the reserved one
 * below. Older readers take it for a symbol of an address that never occurs.
 * Its "name" is a sequence of whole items: BYTE kind, U body length, body. A
 * reader skips kinds it does not know, and ignores bytes after the fields it
 * knows. Negative 32-bit lines are widened to 64 bits, as everywhere.
 */
#define EXTENSION_ADDRESS UINT64_MAX
#define EXTENSION_VERSION 1

enum extension_item {
	/* Once, first: U version, U pid, U mode (0 D, 1 L, 2 C), U interval_ns,
	 * U start (CLOCK_MONOTONIC ns), U start (CLOCK_REALTIME ns), STR clock,
	 * STR virtual machine, STR writer (product and version). */
	ITEM_SESSION = 1,
	/* U symbol id, U prototype address, U first line, U line count, STR
	 * chunk name, STR function name (empty: not known); then, where it is
	 * known, U bytes of the prototype with its bytecode. Ids start at 1. */
	ITEM_LUA_SYMBOL = 2,
	/* U fast function number, STR name such as "string.format". */
	ITEM_FAST_SYMBOL = 3,
	/* One node of the call tree: U parent node (0: root), BYTE frame kind
	 * (enum frame_kind) | flags (FRAME_FLAG_*), then by kind:
	 * HOST, C: U address; LUA: U symbol id, U line (0: not known);
	 * FAST: U number; MARKER: U enum frame_marker, U count.
	 * Nodes are numbered 1, 2, 3, … in order of appearance. */
	ITEM_NODE = 4,
	/* About the next sample record: U zigzag difference in ns to the time
	 * of the sample before (of the session's start for the first), U thread
	 * id, U VM number (0: none), U coroutine (address; 0: none), U node of
	 * the leaf frame. */
	ITEM_SAMPLE = 5,
	/* The tree is empty again: node numbers restart at 1. No fields. */
	ITEM_RESET_NODES = 6,
	/* U enum lost_reason, U samples lost for it since the start. The last
	 * one for a reason counts. */
	ITEM_LOST = 7,
	/* U thread id, U interval_ns: from its next sample on the thread is
	 * sampled by this interval, not that of the session. */
	ITEM_INTERVAL = 12,
	/* Once, last: U stop (CLOCK_MONOTONIC ns), U samples, U samples lost. */
	ITEM_END = 8,
	/* Code of an object file, mapped from now on: U start address, U bytes,
	 * U offset in the file, U address of the start by the file's own count,
	 * STR build id (its bytes; empty: none), STR path. Replaces what was
	 * mapped there. */
	ITEM_MAPPING = 9,
	/* U coroutine, STR label (empty: none): the samples of this coroutine
	 * have this label from here on. */
	ITEM_LABEL = 10,
	/* Machine code of a trace: U trace number, U address, U bytes. Holds
	 * until the number or the addresses are given to another one. */
	ITEM_TRACE_CODE = 11,
};

enum frame_kind {
	FRAME_HOST = 1,   /* native code: address of the instruction; of the
	                   * kernel's if bit 63 is set */
	FRAME_LUA = 2,    /* Lua function */
	FRAME_C = 3,      /* C function called from Lua: its entry address */
	FRAME_FAST = 4,   /* library function that the VM registers itself */
	FRAME_MARKER = 5, /* not a function: says what is missing here */
};

/*
 * What the VM does for the innermost Lua function, as a node of its own on top of
 * that: FRAME_FAST with the number VM_PART_BASE + enum vm_part. It is no function:
 * readers leave it out unless asked. Names: vm_part_name().
 */
#define VM_PART_BASE 65536

enum vm_part {
	VM_PART_NONE = 0,
	VM_PART_BYTECODE = 1, /* 1 + number of the bytecode it executes */
	VM_PART_HEADER = 246, /* the same for function headers, the last eight
	                       * bytecodes, whose numbers differ by build */
	VM_PART_EXIT = 254,   /* it leaves a trace */
	VM_PART_STUB = 255,   /* machine code that belongs to no trace */
};

#define VM_HEADER_COUNT 8

#define FRAME_KIND_MASK     0x0f
#define FRAME_FLAG_COMPILED 0x10 /* runs as, or is inlined in, a trace */

/* What a marker frame stands for. Names: frame_marker_name(). */
enum frame_marker {
	MARKER_TRUNCATED = 1,     /* count frames left out here */
	MARKER_GUEST_NO_BASE = 2, /* Lua stack: no frame base can be trusted */
	MARKER_GUEST_BAD_FRAME = 3, /* Lua stack: a frame link is broken */
	MARKER_HOST_NO_TABLE = 4,   /* native: no unwind rule for this code */
	MARKER_HOST_BAD_READ = 5,   /* native: stack memory is not readable */
	MARKER_HOST_NO_PROGRESS =
		6, /* native: the stack pointer does not move */
	MARKER_SYMBOLS_FULL =
		7, /* Lua function, but the symbol table is full */
	MARKER_HOST_GUESSED = 8, /* native: no unwind rule; what follows was
	                          * found by guessing */
	MARKER_COUNT
};

/* Why a sample was not recorded at all. Names: lost_reason_name(). */
enum lost_reason {
	LOST_RING_FULL = 1,      /* the writer thread did not keep up */
	LOST_FOREIGN_THREAD = 2, /* signal came to a thread without a sampler */
	LOST_NESTED = 3,         /* signal inside the handler */
	LOST_FAULTS_BLOCKED = 4, /* SIGSEGV blocked: reading would be fatal */
	LOST_FAULTS_REPLACED =
		5,     /* the host has replaced our SIGSEGV handler */
	LOST_LATE = 6, /* the signal came when its stack was gone */
	LOST_SIGNAL_REPLACED = 7, /* the host has replaced our handler of it */
	LOST_SIGNAL_BLOCKED = 8,  /* the thread has blocked it */
	LOST_UNWRITTEN = 9, /* the disk did not take it; a later dump tells */
	LOST_COUNT
};

#endif
