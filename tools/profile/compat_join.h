// SPDX-License-Identifier: MIT
/*
 * Joins the two stacks of a sample the way the parser that came with the
 * format does, faults included, for `--compat`: whoever compares with its old
 * output wants the same lines.
 *
 * Native frames are copied from the outermost one inwards. Behind lua_call*
 * and lua_pcall* come the Lua frames from the outermost to the first C
 * function, and one frame is taken out of the Lua list: that C function, or the
 * innermost frame where there is none. lua_cpcall* takes the innermost frame
 * out. What is left of the Lua list is dropped.
 */
#ifndef PROFILE_COMPAT_JOIN_H
#define PROFILE_COMPAT_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compat_entry {
	COMPAT_NO_ENTRY,
	COMPAT_CALL,   /* lua_call*, lua_pcall* */
	COMPAT_CPCALL, /* lua_cpcall* */
};

struct compat_guest {
	uint32_t frame; /* index of the profile's frame, 0: not printed */
	bool is_c;
};

struct compat_host {
	uint32_t frame;
	enum compat_entry entry;
};

struct compat_join {
	uint32_t *frames; /* the result, root first */
	size_t count;
	size_t capacity;
};

enum compat_entry compat_entry_of(const char *name);

/* Zero a struct compat_join before its first use. Both lists are innermost
 * first; the guest list is used up. */
void compat_join_stacks(struct compat_join *join, struct compat_guest *guest,
                        size_t guest_count, const struct compat_host *host,
                        size_t host_count);
void compat_join_free(struct compat_join *join);

#endif
