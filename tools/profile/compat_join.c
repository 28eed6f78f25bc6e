// SPDX-License-Identifier: MIT
/* The old parser's way to join stacks; see compat_join.h. */
#include "compat_join.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

enum compat_entry compat_entry_of(const char *name)
{
	if (begins_with(name, "lua_cpcall"))
		return COMPAT_CPCALL;
	if (begins_with(name, "lua_call") || begins_with(name, "lua_pcall"))
		return COMPAT_CALL;
	return COMPAT_NO_ENTRY;
}

void compat_join_free(struct compat_join *join)
{
	free(join->frames);
	*join = (struct compat_join){0};
}

static void put(struct compat_join *join, uint32_t frame)
{
	if (frame == 0)
		return;
	join->frames = memory_grow(join->frames, &join->capacity,
	                           join->count + 1, sizeof(*join->frames));
	join->frames[join->count++] = frame;
}

static void take_out(struct compat_guest *guest, size_t *count, size_t at)
{
	if (*count == 0)
		return;
	--*count;
	memmove(&guest[at], &guest[at + 1], (*count - at) * sizeof(*guest));
}

static void put_run(struct compat_join *join, struct compat_guest *guest,
                    size_t *count)
{
	size_t g = *count;

	while (g > 0 && !guest[g - 1].is_c)
		put(join, guest[--g].frame);
	take_out(guest, count, g > 0 ? g - 1 : 0);
}

void compat_join_stacks(struct compat_join *join, struct compat_guest *guest,
                        size_t guest_count, const struct compat_host *host,
                        size_t host_count)
{
	join->count = 0;
	for (size_t h = host_count; h-- > 0;) {
		put(join, host[h].frame);
		if (host[h].entry == COMPAT_CALL)
			put_run(join, guest, &guest_count);
		else if (host[h].entry == COMPAT_CPCALL)
			take_out(guest, &guest_count, 0);
	}
}
