// SPDX-License-Identifier: MIT
/* Colours of flame graphs; see flame_class.h. */
#include "flame_class.h"

static const struct {
	const char *name;
	const char *colour;
} classes[FLAME_COUNT] = {
	[FLAME_LUA] = {"Lua, interpreted", "#f2b33d"},
	[FLAME_COMPILED] = {"Lua, compiled", "#7cbb55"},
	[FLAME_LIBRARY] = {"C function called from Lua", "#e8825a"},
	[FLAME_NATIVE] = {"native", "#8fb4d9"},
	[FLAME_GC] = {"garbage collector", "#c58fd0"},
	[FLAME_COMPILER] = {"trace compiler", "#5fbdb0"},
	[FLAME_MARKER] = {"missing", "#b5b5b5"},
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
	}
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
