// SPDX-License-Identifier: MIT
/*
 * JSON of speedscope (https://www.speedscope.app, its file-format-schema):
 * frames in a table with file and line, each distinct stack once with its
 * number of samples as the weight.
 */
#include "output.h"

#include <stdlib.h>

#include "config.h"
#include "json_text.h"
#include "profile/stack_view.h"

static void write_frame(FILE *file, const struct profile_frame *frame)
{
	fputs("{\"name\":", file);
	json_write_string(file, frame->name);
	if (frame->file[0] != '\0') {
		fputs(",\"file\":", file);
		json_write_string(file, frame->file);
		fprintf(file, ",\"line\":%u",
		        frame->line > 0 ? frame->line : frame->first_line);
	}
	fputc('}', file);
}

static void write_frames(FILE *file, const struct profile *profile)
{
	fputs("\"shared\":{\"frames\":[", file);
	for (size_t i = 1; i < profile->frame_count; i++) {
		fputs(i > 1 ? ",\n" : "\n", file);
		write_frame(file, &profile->frames[i]);
	}
	fputs("]},\n", file);
}

static void write_stacks(FILE *file, const struct profile *profile,
                         const struct stack_view *view)
{
	const struct stack_entry **path = stack_view_path(view);
	const char *separator = "\n";

	fputs("\"samples\":[", file);
	for (size_t i = 0; i < view->count; i++) {
		const struct stack_entry *entry = &view->entries[i];

		path[entry->depth] = entry;
		if (entry->self == 0)
			continue;
		fprintf(file, "%s[", separator);
		separator = ",\n";
		for (uint32_t depth = 1; depth <= entry->depth; depth++)
			fprintf(file, "%s%td", depth > 1 ? "," : "",
			        path[depth]->frame - profile->frames - 1);
		fputc(']', file);
	}
	free(path);
}

static void write_weights(FILE *file, const struct stack_view *view)
{
	const char *separator = "";

	fputs("],\n\"weights\":[", file);
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].self == 0)
			continue;
		fprintf(file, "%s%llu", separator,
		        (unsigned long long)view->entries[i].self);
		separator = ",";
	}
	fputs("]", file);
}

void output_speedscope(FILE *file, const struct profile *profile,
                       const char *title)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	fputs("{\"$schema\":"
	      "\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"" PACKAGE_NAME "@" PACKAGE_VERSION "\",\n"
	      "\"name\":",
	      file);
	json_write_string(file, title);
	fputs(",\"activeProfileIndex\":0,\n", file);
	write_frames(file, profile);
	fputs("\"profiles\":[{\"type\":\"sampled\",\"name\":", file);
	json_write_string(file, title);
	fprintf(file,
	        ",\"unit\":\"none\",\"startValue\":0,\"endValue\":%llu,\n",
	        (unsigned long long)profile->sample_count);
	write_stacks(file, profile, &view);
	write_weights(file, &view);
	fputs("}]}\n", file);
	stack_view_close(&view);
}
