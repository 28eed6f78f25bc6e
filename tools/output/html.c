// SPDX-License-Identifier: MIT
/*
 * Interactive flame graph in one HTML file, with nothing from elsewhere. The
 * page is page.html; this file puts the profile into it, as JSON.
 *
 * Names come from the profiled program and are hostile: in the JSON `<`, `>`
 * and `&` are escaped, so that no name can end the script element, and the page
 * shows them as text only.
 */
#include "output.h"

#include <string.h>

#include "flame_class.h"
#include "html_page.h"
#include "json_text.h"
#include "profile/stack_view.h"
#include "stream/frame_name.h"

/* Where the JSON belongs in the page. */
#define DATA_MARK "@DATA@"

static void write_classes(FILE *file)
{
	fputs("\"classes\":[", file);
	for (int i = 0; i < FLAME_COUNT; i++) {
		fputs(i > 0 ? ",[" : "[", file);
		json_write_string(file, flame_class_name((enum flame_class)i));
		fputc(',', file);
		json_write_string(file,
		                  flame_class_colour((enum flame_class)i));
		fputc(']', file);
	}
	fputs("],\n\"states\":[", file);
	for (size_t state = 0; state < STATE_COUNT; state++) {
		fputs(state > 0 ? "," : "", file);
		json_write_string(file, sample_state_name(state));
	}
	fputs("],\n", file);
}

static void write_frames(FILE *file, const struct profile *profile)
{
	fputs("\"names\":[\"all\"", file);
	for (size_t i = 1; i < profile->frame_count; i++) {
		fputs(",\n", file);
		json_write_string(file, profile->frames[i].name);
	}
	fputs("],\n", file);
}

/* [depth, name, class, self, total, state, samples in it, …] */
static void write_entry(FILE *file, const struct profile *profile,
                        const struct stack_entry *entry)
{
	long name = entry->frame ? entry->frame - profile->frames : 0;
	int class = entry->frame ? (int)flame_class_of(entry) : -1;

	fprintf(file, "[%u,%ld,%d,%llu,%llu", entry->depth, name, class,
	        (unsigned long long)entry->self,
	        (unsigned long long)entry->total);
	for (size_t state = 0; state < STATE_COUNT; state++)
		if (entry->by_state[state] > 0)
			fprintf(file, ",%zu,%llu", state,
			        (unsigned long long)entry->by_state[state]);
	fputc(']', file);
}

static void write_data(FILE *file, const struct profile *profile,
                       const char *title)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	fputs("{\"title\":", file);
	json_write_string(file, title);
	fprintf(file, ",\"lost\":%llu,\n",
	        (unsigned long long)profile_lost_count(profile));
	write_classes(file);
	write_frames(file, profile);
	fputs("\"entries\":[", file);
	for (size_t i = 0; i < view.count; i++) {
		fputs(i > 0 ? ",\n" : "", file);
		write_entry(file, profile, &view.entries[i]);
	}
	fputs("]}", file);
	stack_view_close(&view);
}

void output_html(FILE *file, const struct profile *profile, const char *title)
{
	const char *mark = strstr(html_page, DATA_MARK);

	fwrite(html_page, 1, (size_t)(mark - html_page), file);
	write_data(file, profile, title);
	fputs(mark + strlen(DATA_MARK), file);
}
