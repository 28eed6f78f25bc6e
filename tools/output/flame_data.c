// SPDX-License-Identifier: MIT
/* The profile as flame.js wants it; see flame_data.h. */
#include "flame_data.h"

#include "flame_class.h"
#include "json_text.h"
#include "stream/frame_name.h"

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
	fputs("],\n\"state_names\":[", file);
	for (size_t state = 0; state < STATE_COUNT; state++) {
		fputs(state > 0 ? "," : "", file);
		json_write_string(file, sample_state_name(state));
	}
	fputs("],\n", file);
}

static void write_names(FILE *file, const struct profile *profile)
{
	fputs("\"names\":[\"all\"", file);
	for (size_t i = 1; i < profile->frame_count; i++) {
		fputs(",\n", file);
		json_write_string(file, profile->frames[i].name);
	}
	fputs("]", file);
}

/* ---- columns ----------------------------------------------------------- */

static uint64_t depth_of(const struct profile *profile,
                         const struct stack_entry *entry)
{
	(void)profile;
	return entry->depth;
}

static uint64_t name_of(const struct profile *profile,
                        const struct stack_entry *entry)
{
	return entry->frame ? (uint64_t)(entry->frame - profile->frames) : 0;
}

static uint64_t self_of(const struct profile *profile,
                        const struct stack_entry *entry)
{
	(void)profile;
	return entry->self;
}

static uint64_t total_of(const struct profile *profile,
                         const struct stack_entry *entry)
{
	(void)profile;
	return entry->total;
}

static uint64_t new_self_of(const struct profile *profile,
                            const struct stack_entry *entry)
{
	(void)profile;
	return entry->new_self;
}

static uint64_t new_total_of(const struct profile *profile,
                             const struct stack_entry *entry)
{
	(void)profile;
	return entry->new_total;
}

static void write_column(FILE *file, const char *name,
                         const struct profile *profile,
                         const struct stack_view *view,
                         uint64_t (*value)(const struct profile *profile,
                                           const struct stack_entry *entry))
{
	fprintf(file, ",\n\"%s\":[", name);
	for (size_t i = 0; i < view->count; i++)
		fprintf(file, "%s%llu", i > 0 ? "," : "",
		        (unsigned long long)value(profile, &view->entries[i]));
	fputc(']', file);
}

static void write_kinds(FILE *file, const struct stack_view *view)
{
	fputs(",\n\"kind\":[-1", file);
	for (size_t i = 1; i < view->count; i++)
		fprintf(file, ",%d", (int)flame_class_of(&view->entries[i]));
	fputc(']', file);
}

/* A number: all samples have this state. Else state, samples, state, … */
static void write_states(FILE *file, const struct stack_entry *entry)
{
	const char *separator = "[";

	for (size_t state = 0; state < STATE_COUNT; state++) {
		if (entry->by_state[state] == 0)
			continue;
		if (entry->by_state[state] == entry->total) {
			fprintf(file, "%zu", state);
			return;
		}
		fprintf(file, "%s%zu,%llu", separator, state,
		        (unsigned long long)entry->by_state[state]);
		separator = ",";
	}
	fputs(entry->total == 0 ? "[]" : "]", file);
}

void flame_data_write(FILE *file, const struct profile *profile,
                      const struct stack_view *view, const char *title)
{
	fputs("{\"title\":", file);
	json_write_string(file, title);
	json_write_member(file, "lost", profile_lost_count(profile), false);
	fputs(",\n", file);
	write_classes(file);
	write_names(file, profile);
	write_column(file, "depth", profile, view, depth_of);
	write_column(file, "name", profile, view, name_of);
	write_column(file, "self", profile, view, self_of);
	write_column(file, "total", profile, view, total_of);
	if (profile->new_from > 0) {
		write_column(file, "new_self", profile, view, new_self_of);
		write_column(file, "new_total", profile, view, new_total_of);
	}
	write_kinds(file, view);
	fputs(",\n\"states\":[", file);
	for (size_t i = 0; i < view->count; i++) {
		fputs(i > 0 ? "," : "", file);
		write_states(file, &view->entries[i]);
	}
	fputs("]}", file);
}
