// SPDX-License-Identifier: MIT
/* Colours of flame graphs: what kind of work a frame is. */
#ifndef OUTPUT_FLAME_CLASS_H
#define OUTPUT_FLAME_CLASS_H

#include "profile/stack_view.h"

enum flame_class {
	FLAME_LUA,      /* Lua function, interpreted */
	FLAME_COMPILED, /* Lua function in a trace, or a trace */
	FLAME_LIBRARY,  /* C and library functions that Lua called */
	FLAME_NATIVE,   /* other native code */
	FLAME_KERNEL,   /* native code of the kernel */
	FLAME_GC,       /* native code in garbage collection */
	FLAME_COMPILER, /* native code of the trace compiler */
	FLAME_MARKER,   /* no function: something is missing */
	FLAME_GROUP,    /* no function: what stacks are parted by */
	FLAME_COUNT
};

/* Classes of all entries of a view. A native frame belongs to the collector or the compiler if all of its
 * samples have such a VM state. */
enum flame_class flame_class_of(const struct stack_entry *entry);

const char *flame_class_name(enum flame_class class);
const char *flame_class_colour(enum flame_class class); /* "#rrggbb" */

#endif
