// SPDX-License-Identifier: MIT
/*
 * Address arena: addresses for things that have no machine code of their own
 * (Lua functions, library functions, markers), so that perf can name them.
 *
 * perf asks /tmp/perf-<pid>.map only about addresses in executable anonymous
 * mappings. The arena is such a mapping that nobody ever touches: it costs
 * address space, no memory. Ranges are handed out once and never reused, so a
 * map file has no stale line for them.
 *
 * Async-signal-safe: address_arena_reserve().
 */
#ifndef PERFMAP_ARENA_SIG_H
#define PERFMAP_ARENA_SIG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_ARENA_BYTES (256u << 20)

struct address_arena {
	uint64_t base;
	uint64_t end;
	_Atomic uint64_t next; /* first address not handed out */
};

/* Maps the region. Returns 0 or a negative errno. */
int address_arena_open(struct address_arena *arena, size_t bytes);
void address_arena_close(struct address_arena *arena);

/* A range of bytes addresses, 16-byte aligned; 0 if the arena is used up. */
uint64_t address_arena_reserve(struct address_arena *arena, uint32_t bytes);

#endif
