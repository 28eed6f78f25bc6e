// SPDX-License-Identifier: MIT
/*
 * Folded stacks: `frame;frame;frame count`, root first, a line a stack, sorted
 * by frames. Comparisons have two counts, old and new. Read by flamegraph.pl, inferno, speedscope and many others.
 */
#include "output.h"

#include <stdlib.h>

#include "profile/stack_view.h"

static void write_line(FILE *file, const struct stack_entry **path,
                       const struct stack_entry *entry, bool is_comparison)
{
	for (uint32_t depth = 1; depth <= entry->depth; depth++)
		fprintf(file, "%s%s", depth > 1 ? ";" : "",
		        path[depth]->frame->name);
	if (entry->depth == 0)
		fputs("[no stack]", file);
	if (is_comparison)
		fprintf(file, " %llu",
		        (unsigned long long)(entry->self - entry->new_self));
	fprintf(file, " %llu\n",
	        (unsigned long long)(is_comparison ? entry->new_self
	                                           : entry->self));
}

void output_folded(FILE *file, const struct profile *profile, const char *title)
{
	struct stack_view view;

	(void)title;
	stack_view_open(&view, profile, VIEW_BY_NAME);
	const struct stack_entry **path = stack_view_path(&view);
	for (size_t i = 0; i < view.count; i++) {
		const struct stack_entry *entry = &view.entries[i];

		path[entry->depth] = entry;
		if (entry->self > 0)
			write_line(file, path, entry, profile->new_from > 0);
	}
	free(path);
	stack_view_close(&view);
}
