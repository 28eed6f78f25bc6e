// SPDX-License-Identifier: MIT
/* Table of the output formats; see output.h. */
#include "output.h"

#include <string.h>

const struct output_format output_formats[] = {
	{"folded", "folded stacks, for flame graph tools", output_folded},
	{"top", "table of functions, VM states and lost samples", output_top},
	{"html", "flame graph that opens in a browser", output_html},
	{"svg", "flame graph as a picture", output_svg},
	{"compat", "as the parser of Tarantool's LuaJIT", output_compat},
	{NULL, NULL, NULL},
};

const struct output_format *output_find(const char *name)
{
	for (const struct output_format *format = output_formats; format->name;
	     format++)
		if (strcmp(format->name, name) == 0)
			return format;
	return NULL;
}
