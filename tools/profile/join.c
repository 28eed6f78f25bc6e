// SPDX-License-Identifier: MIT
/* Joins Lua and native stacks without the extension; see join.h. */
#include "join.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define UNMATCHED SIZE_MAX

/* One of both lists while it is walked from the root to the leaf. */
struct join_walk {
	struct join *join;
	const struct join_guest *guest;
	const struct join_host *host;
	size_t guest_left; /* frames not yet put out; the last is the next */
	size_t host_left;
};

bool join_name_enters_vm(const char *name)
{
	static const char *const entries[] = {
		"lua_call",
		"lua_pcall",
		"lua_cpcall",
		"lua_resume",
		"lj_vm_call",
		"lj_vm_pcall",
		"lj_vm_cpcall",
		"lj_vm_resume",
		"lj_ff_coroutine_resume",
		"lj_ff_coroutine_wrap_aux",
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (strcmp(name, entries[i]) == 0)
			return true;
	return false;
}

void join_free(struct join *join)
{
	free(join->frames);
	free(join->match);
	*join = (struct join){0};
}

static bool is_same_function(const struct join_guest *guest,
                             const struct join_host *host)
{
	return host->has_symbol && host->address == guest->address;
}

/*
 * Matches from the leaf outwards: right if the native stack is whole, also
 * when it began in another coroutine. Returns how many are without a match.
 */
static size_t match_from_leaf(struct join *join, const struct join_guest *guest,
                              size_t guest_count, const struct join_host *host,
                              size_t host_count)
{
	size_t missing = 0;
	size_t next = 0; /* first host frame that is still free */

	for (size_t g = 0; g < guest_count; g++) {
		size_t h = next;

		join->match[g] = UNMATCHED;
		if (!guest[g].is_c)
			continue;
		while (h < host_count && !is_same_function(&guest[g], &host[h]))
			h++;
		if (h < host_count) {
			join->match[g] = h;
			next = h + 1;
		} else {
			missing++;
		}
	}
	return missing;
}

/* From the root inwards: right if innermost native frames are missing. */
static size_t match_from_root(struct join *join, const struct join_guest *guest,
                              size_t guest_count, const struct join_host *host,
                              size_t host_count)
{
	size_t missing = 0;
	size_t left = host_count;

	for (size_t g = guest_count; g-- > 0;) {
		size_t h = left;

		join->match[g] = UNMATCHED;
		if (!guest[g].is_c)
			continue;
		while (h > 0 && !is_same_function(&guest[g], &host[h - 1]))
			h--;
		if (h > 0) {
			join->match[g] = h - 1;
			left = h - 1;
		} else {
			missing++;
		}
	}
	return missing;
}

static void put(struct join *join, uint32_t frame)
{
	join->frames = memory_grow(join->frames, &join->capacity,
	                           join->count + 1, sizeof(*join->frames));
	join->frames[join->count++] = frame;
}

/* Native frames until only `left` of them are left. */
static void put_host(struct join_walk *walk, size_t left)
{
	while (walk->host_left > left)
		put(walk->join, walk->host[--walk->host_left].frame);
}

/* The Lua list until only `left` of it is left. A C function that is met on
 * the native stack is put out there, not here. */
static void put_guest(struct join_walk *walk, size_t left)
{
	while (walk->guest_left > left) {
		size_t g = --walk->guest_left;

		if (walk->join->match[g] == UNMATCHED)
			put(walk->join, walk->guest[g].frame);
	}
}

/* How many native frames are left once the innermost one that enters the
 * virtual machine, among those before `end`, is put out; `end` if there is
 * none. */
static size_t after_vm_entry(const struct join_walk *walk, size_t end)
{
	for (size_t h = end; h < walk->host_left; h++)
		if (walk->host[h].enters_vm)
			return h;
	return end;
}

/* Both lists up to a place where they meet: the guest's next one with a match,
 * or both ends. */
static void put_section(struct join_walk *walk, size_t guest_left,
                        size_t host_left)
{
	if (walk->guest_left > guest_left) {
		put_host(walk, after_vm_entry(walk, host_left));
		put_guest(walk, guest_left);
	}
	put_host(walk, host_left);
}

void join_stacks(struct join *join, const struct join_guest *guest,
                 size_t guest_count, const struct join_host *host,
                 size_t host_count)
{
	struct join_walk walk = {join, guest, host, guest_count, host_count};

	join->count = 0;
	join->match = memory_grow(join->match, &join->match_capacity,
	                          guest_count, sizeof(*join->match));
	join->unplaced_count =
		match_from_leaf(join, guest, guest_count, host, host_count);
	if (join->unplaced_count > 0)
		join->unplaced_count = match_from_root(join, guest, guest_count,
		                                       host, host_count);

	for (size_t g = guest_count; g-- > 0;) {
		if (join->match[g] == UNMATCHED)
			continue;
		put_section(&walk, g + 1, join->match[g] + 1);
		put_host(&walk, join->match[g]);
		put_guest(&walk, g);
	}
	put_section(&walk, 0, 0);
}
