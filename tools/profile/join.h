// SPDX-License-Identifier: MIT
/*
 * Joins the Lua and the native stack of a sample that does not say how they
 * belong together: dumps without our extension.
 *
 * The format has two lists. Its Lua list has the C functions that Lua called,
 * by entry address; its native list has return addresses, of which the symbols
 * tell the functions. Where both lists name the same C function they meet.
 * The Lua functions between two such places belong behind the native function
 * that entered the virtual machine.
 *
 * What the format leaves open: the Lua list ends at the bottom of the current
 * coroutine; the innermost native frames may be missing; library functions of
 * the virtual machine have no address.
 */
#ifndef PROFILE_JOIN_H
#define PROFILE_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct join_guest {
	uint32_t frame;   /* index of the profile's frame */
	bool is_c;        /* a C function */
	uint64_t address; /* is_c: its entry, as the start of its symbol */
};

struct join_host {
	uint32_t frame;
	bool has_symbol;
	bool enters_vm;   /* such as lua_pcall */
	uint64_t address; /* has_symbol: start of the function */
};

struct join {
	uint32_t *frames; /* the result, root first */
	size_t count;
	size_t capacity;
	size_t unplaced_count; /* C functions not met on the native stack */
	size_t *match; /* of each C function: index in host, or SIZE_MAX */
	size_t match_capacity;
};

/* Zero a struct join before its first use. Both lists are innermost first. */
void join_stacks(struct join *join, const struct join_guest *guest,
                 size_t guest_count, const struct join_host *host,
                 size_t host_count);
void join_free(struct join *join);

/* Does a native function of this name run Lua functions? */
bool join_name_enters_vm(const char *name);

#endif
