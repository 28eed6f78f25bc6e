// SPDX-License-Identifier: MIT
/*
 * Lua symbols: which prototypes and traces a sampler has seen, so that each is
 * described once in its ring, before the first sample that needs it. An address
 * or trace number that holds something else by now is a new symbol.
 *
 * Written by one signal handler only. Async-signal-safe: all but open and close.
 */
#ifndef LIB_LUA_SYMBOLS_SIG_H
#define LIB_LUA_SYMBOLS_SIG_H

#include <stdatomic.h>
#include <stdint.h>

#include "error.h"
#include "ring_sig.h"
#include "vm/guest_sig.h"
#include "vm/trace_sig.h"
#include "vm/vm.h"
#include "../perfmap/arena_sig.h"

/* Powers of two. A program with more live prototypes in its samples than three
 * quarters of the first is not known; traces only repeat their record. */
#define PROTOTYPES_MAX (1 << 16)
#define TRACES_MAX     (1 << 12)
#define RENAMES_MAX    8 /* each is another symbol */

struct known_prototype {
	uint64_t prototype;     /* address, 0: free */
	uint64_t contents;      /* of what was there, as a hash */
	uint64_t arena_address; /* of its range, 0: none */
	uint32_t id;
	uint32_t first_line;
	uint32_t line_count;
	/* Where another function of the same description may have another name:
	 * a hash of the name by which it was called, 0: no such function; and
	 * in which round that was seen. */
	uint32_t call_hash;
	uint32_t call_round;
	uint32_t rename_count; /* up to RENAMES_MAX, then without a name */
};

struct known_trace {
	uint64_t start_pc;
	uint64_t code; /* address of its machine code */
	uint32_t vm_number;
	uint32_t number;
	uint32_t lua_symbol;
	uint32_t code_bytes;
};

struct lua_symbols {
	struct ring *ring;
	struct address_arena *arena;
	_Atomic uint32_t *last_id;
	uint32_t prototype_count;
	uint32_t round;
	struct known_prototype prototypes[PROTOTYPES_MAX];
	struct known_trace traces[TRACES_MAX];
};

enum symbol_result {
	SYMBOL_KNOWN,
	SYMBOL_TABLE_FULL, /* no more prototypes can be told apart */
	SYMBOL_RING_FULL,  /* no room in the ring to describe it */
	SYMBOL_UNREADABLE, /* no prototype at this address */
};

/* arena may be NULL: no addresses for perf then. Ids follow on *last_id, which
 * may be shared with other tables. */
struct lua_symbols *lua_symbols_open(struct ring *ring,
                                     struct address_arena *arena,
                                     _Atomic uint32_t *last_id,
                                     struct error *error);
void lua_symbols_close(struct lua_symbols *symbols);

/* Before each sample, or other moment: what was seen before may have changed. */
void lua_symbols_begin(struct lua_symbols *symbols);

/* The symbol of the prototype at an address, described first if need be; then
 * with the name by which it was called, if frame is not NULL. */
enum symbol_result lua_symbols_find(struct lua_symbols *symbols,
                                    const struct vm *vm, uint64_t prototype,
                                    const struct guest_frame *frame,
                                    const struct known_prototype **found);

/* Describes a trace unless it is known. *lua_symbol gets the id of the
 * prototype that it starts in, 0 if that is not known. */
enum symbol_result lua_symbols_find_trace(struct lua_symbols *symbols,
                                          const struct vm *vm, uint32_t number,
                                          uint32_t *lua_symbol);

/* Address that stands for a line of the function to perf. */
uint64_t known_prototype_address(const struct known_prototype *known,
                                 uint32_t line);

/* Size of a function's range in the arena: one address for each line, one for
 * an unknown line. */
#define LUA_SYMBOL_RANGE_BYTES(line_count) ((line_count) + 2)

#endif
