// SPDX-License-Identifier: MIT
/* Colours of flame graphs; see flame_class.h. */
#include "flame_class.h"

#include "profile/select.h"

static const struct {
	const char *name;
	const char *colour;
} classes[FLAME_COUNT] = {
	[FLAME_LUA] = {"Lua, interpreted", "#f4b942"},
	[FLAME_COMPILED] = {"Lua, compiled", "#8cc265"},
	[FLAME_LIBRARY] = {"C called from Lua", "#ee8a62"},
	[FLAME_NATIVE] = {"native", "#93b7dd"},
	[FLAME_KERNEL] = {"kernel", "#7e8fc4"},
	[FLAME_GC] = {"garbage collector", "#cb96d6"},
	[FLAME_COMPILER] = {"trace compiler", "#5fc0b2"},
	[FLAME_MARKER] = {"missing", "#b9b9b9"},
	[FLAME_GROUP] = {"group", "#d8d2c4"},
};

static enum flame_class native_class(const struct stack_entry *entry)
{
	const uint64_t *by_state = entry->by_state;
	uint64_t compiler = by_state[STATE_EXIT] + by_state[STATE_RECORD] +
	                    by_state[STATE_OPT] + by_state[STATE_ASM];

	if (by_state[STATE_GC] == entry->total)
		return FLAME_GC;
	if (compiler == entry->total)
		return FLAME_COMPILER;
	return FLAME_NATIVE;
}

enum flame_class flame_class_of(const struct stack_entry *entry)
{
	switch (entry->frame->kind) {
	case FRAME_LUA:
		return entry->frame->flags & FRAME_FLAG_COMPILED
		               ? FLAME_COMPILED
		               : FLAME_LUA;
	case FRAME_C:
	case FRAME_FAST:
		return FLAME_LIBRARY;
	case FRAME_MARKER:
		return FLAME_MARKER;
	case FRAME_GROUP:
		return FLAME_GROUP;
	}
	if (entry->frame->flags & PROFILE_FLAG_KERNEL)
		return FLAME_KERNEL;
	return native_class(entry);
}

const char *flame_class_name(enum flame_class class)
{
	return classes[class].name;
}

const char *flame_class_colour(enum flame_class class)
{
	return classes[class].colour;
}
