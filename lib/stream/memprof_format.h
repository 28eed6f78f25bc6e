// SPDX-License-Identifier: MIT
/*
 * The numbers of a memprof dump: its events, and the items of the extension
 * that only it has. The symbol table and the other items are those of
 * sysprof_format.h. Values are part of the file format: never change one, only
 * add. doc/dump-format.md tells the whole story.
 */
#ifndef STREAM_MEMPROF_FORMAT_H
#define STREAM_MEMPROF_FORMAT_H

#include <stdint.h>

#include "sysprof_format.h"

#define MEMPROF_MAGIC   "ljm"
#define MEMPROF_VERSION 3

/* Bits 0-1 of the header byte of an event. The source's fields come first. */
enum memprof_event {
	MEMPROF_SYMBOL = 0,
	MEMPROF_ALLOC = 1,   /* U new address, U new size */
	MEMPROF_FREE = 2,    /* U old address, U old size */
	MEMPROF_REALLOC = 3, /* U old address, U old size, U new address, U new
	                      * size */
};

/* Bits 2-4: who asked for it. */
enum memprof_source {
	MEMPROF_INTERNAL = 1, /* the VM; no fields */
	MEMPROF_LUA = 2,      /* U prototype address, U current line */
	MEMPROF_C = 3,        /* U address of the function */
	MEMPROF_TRACE = 4,    /* U trace number */
};

#define MEMPROF_EVENT_MASK   0x03
#define MEMPROF_SOURCE_SHIFT 2
#define MEMPROF_HEADER_MAX   0x13

/* Symbol events: bodies as in the symbol table. */
enum memprof_record {
	MEMPROF_NEW_PROTO = 0x08,
	MEMPROF_NEW_C = 0x0c, /* also carries the extension */
	MEMPROF_NEW_TRACE = 0x10,
	MEMPROF_END = 0x80,
};

/* Items of the extension in memprof dumps, beside ITEM_LUA_SYMBOL,
 * ITEM_FAST_SYMBOL, ITEM_NODE, ITEM_RESET_NODES and ITEM_LOST. */
enum memprof_item {
	/* Once, first: U version (EXTENSION_VERSION), U pid, U VM number, U
	 * sample_bytes (0: every event is there), U 1 if events have stacks, U
	 * start (CLOCK_MONOTONIC ns), U start (CLOCK_REALTIME ns), STR virtual
	 * machine, STR writer (product and version). */
	ITEM_MEMPROF_SESSION = 16,
	/* Where the events behind it happen, up to the next such item: U zigzag
	 * difference in ns to the time of the item before (of the session's
	 * start for the first), U coroutine (address; 0: none), U number of the
	 * trace that the Lua function runs in (0: interpreted). */
	ITEM_CONTEXT = 17,
	/* About the next event: U node of the leaf frame (0: no stack), U
	 * EVENT_FLAG_*. */
	ITEM_EVENT = 18,
	/* Once, last: U stop (CLOCK_MONOTONIC ns), U events written, U events
	 * lost. */
	ITEM_MEMPROF_END = 19,
};

/* Of a resize of which only one side was sampled. The event is an allocation or
 * a free, as far as balances go. */
#define EVENT_FLAG_RESIZE 1

/* Why events are missing: the reasons of ITEM_LOST in memprof dumps. */
enum memprof_lost {
	MEMPROF_LOST_RING_FULL = 1, /* the writer thread did not keep up */
	MEMPROF_LOST_LIVE_FULL = 2, /* too many sampled blocks are alive */
	MEMPROF_LOST_COUNT
};

#endif
