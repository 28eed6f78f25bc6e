// SPDX-License-Identifier: MIT
/* Table of the output formats; see output.h. */
#include "output.h"

#include <string.h>

const struct output_format output_formats[] = {
	{"folded", "folded stacks, for flame graph tools", output_folded,
         OUTPUT_CAN_COMPARE},
	{"top", "tables of functions, lines, VM states and traces", output_top,
         OUTPUT_CAN_COMPARE | OUTPUT_HAS_ROWS | OUTPUT_WANTS_LINES},
	{"html", "flame graph that opens in a browser", output_html,
         OUTPUT_CAN_COMPARE},
	{"svg", "flame graph as a picture", output_svg, OUTPUT_CAN_COMPARE},
	{"compat", "as the parser of Tarantool's LuaJIT", output_compat, 0},
	{NULL, NULL, NULL, 0},
};

const struct output_format *output_find(const char *name)
{
	for (const struct output_format *format = output_formats; format->name;
	     format++)
		if (strcmp(format->name, name) == 0)
			return format;
	return NULL;
}
