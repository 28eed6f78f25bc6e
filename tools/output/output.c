// SPDX-License-Identifier: MIT
/* Table of the output formats; see output.h. */
#include "config.h"

#include "output.h"

#include <string.h>

#ifdef HAVE_PPROF
#define PPROF_WRITE   output_pprof
#define PPROF_MISSING ""
#else
#define PPROF_WRITE   NULL
#define PPROF_MISSING " (not in this build)"
#endif

const struct output_format output_formats[] = {
	{"folded", "folded stacks, for flame graph tools", output_folded,
         OUTPUT_CAN_COMPARE, NULL},
	{"top", "tables of functions, lines, VM states and traces", output_top,
         OUTPUT_CAN_COMPARE | OUTPUT_HAS_ROWS | OUTPUT_WANTS_LINES, NULL},
	{"html", "flame graph that opens in a browser", output_html,
         OUTPUT_CAN_COMPARE, NULL},
	{"svg", "flame graph as a picture", output_svg, OUTPUT_CAN_COMPARE,
         NULL},
	{"speedscope", "for www.speedscope.app", output_speedscope, 0, NULL},
	{"pprof", "for go tool pprof" PPROF_MISSING, PPROF_WRITE,
         OUTPUT_WANTS_LINES | OUTPUT_WANTS_LABELS, NULL},
	{"firefox", "for profiler.firefox.com, in time", output_firefox,
         OUTPUT_WANTS_LABELS | OUTPUT_WANTS_MOMENTS, NULL},
	{"callgrind", "for KCachegrind", output_callgrind, OUTPUT_WANTS_LINES,
         NULL},
	{"json", "everything, for scripts", output_json,
         OUTPUT_CAN_COMPARE | OUTPUT_WANTS_LABELS, NULL},
	{"perf", "a perf.data for perf report (needs -o)", NULL,
         OUTPUT_WANTS_LINES | OUTPUT_WANTS_LABELS | OUTPUT_WANTS_MOMENTS |
                 OUTPUT_WANTS_ADDRESSES,
         output_perf},
	{"perf-states", "the same, with the VM state as innermost frame", NULL,
         OUTPUT_WANTS_LINES | OUTPUT_WANTS_LABELS | OUTPUT_WANTS_MOMENTS |
                 OUTPUT_WANTS_ADDRESSES,
         output_perf_states},
	{"compat", "as the parser of Tarantool's LuaJIT", output_compat, 0,
         NULL},
	{NULL, NULL, NULL, 0, NULL},
};

const struct output_format *output_find(const char *name)
{
	for (const struct output_format *format = output_formats; format->name;
	     format++)
		if (strcmp(format->name, name) == 0)
			return format;
	return NULL;
}
