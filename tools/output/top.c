// SPDX-License-Identifier: MIT
/*
 * Tables for a terminal: functions and lines by samples of their own and with
 * all they called, samples by VM state and by trace, samples lost by reason.
 * Of a comparison: functions by what has changed.
 */
#include "output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/id_map.h"
#include "profile/memory.h"
#include "profile/stack_view.h"
#include "stream/frame_name.h"

/* Samples of a function or a line: in it, and with it on the stack (each
 * once). The last two are those of the new profile of a comparison. */
struct row {
	const struct profile_frame *frame;
	uint32_t until; /* entry up to which it is on the stack */
	uint64_t self;
	uint64_t total;
	uint64_t new_self;
	uint64_t new_total;
};

struct table {
	struct row *rows;
	size_t count;
	size_t capacity;
	struct id_map known; /* name, line -> row */
};

/* Samples of both sides of a comparison. */
struct sides {
	uint64_t old;
	uint64_t new;
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- collecting -------------------------------------------------------- */

static struct row *find_row(struct table *table,
                            const struct profile_frame *frame, uint32_t line)
{
	uint32_t added = (uint32_t)table->count;
	bool is_new;
	uint32_t index = *id_map_add(&table->known, (uintptr_t)frame->name,
	                             line, added, &is_new);

	if (is_new) {
		table->rows = memory_grow(table->rows, &table->capacity,
		                          ++table->count, sizeof(struct row));
		table->rows[added] = (struct row){.frame = frame};
	}
	return &table->rows[index];
}

static void add_entry(struct row *row, const struct stack_entry *entry,
                      uint32_t index)
{
	row->self += entry->self;
	row->new_self += entry->new_self;
	if (index < row->until)
		return; /* recursion: counted already */
	row->total += entry->total;
	row->new_total += entry->new_total;
	row->until = entry->end;
}

static void collect(struct table *functions, struct table *lines,
                    const struct profile *profile)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_FRAME);
	for (uint32_t i = 1; i < view.count; i++) {
		const struct stack_entry *entry = &view.entries[i];
		const struct profile_frame *frame = entry->frame;

		add_entry(find_row(functions, frame, 0), entry, i);
		if (frame->line > 0)
			add_entry(find_row(lines, frame, frame->line), entry,
			          i);
	}
	stack_view_close(&view);
}

static void table_free(struct table *table)
{
	free(table->rows);
	id_map_free(&table->known);
}

/* ---- one profile ------------------------------------------------------- */

static int compare_frames(const struct row *a, const struct row *b)
{
	int order = strcmp(a->frame->name, b->frame->name);

	if (order != 0)
		return order;
	return a->frame->line < b->frame->line
	               ? -1
	               : a->frame->line > b->frame->line;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return compare_frames(a, b);
}

static bool is_shown(const struct profile *profile, size_t shown,
                     double row_percent)
{
	return (profile->row_limit == 0 || shown < profile->row_limit) &&
	       row_percent >= profile->min_percent;
}

static void write_rows(FILE *file, const struct profile *profile,
                       struct table *table, bool by_line)
{
	uint64_t all = profile->sample_count;
	size_t shown = 0;

	if (table->count > 0)
		qsort(table->rows, table->count, sizeof(*table->rows),
		      compare_rows);
	fprintf(file, "%10s %7s %10s %7s  %s\n", "self", "self%", "total",
	        "total%", by_line ? "line" : "function");
	for (size_t i = 0; i < table->count; i++) {
		const struct row *row = &table->rows[i];

		if (!is_shown(profile, shown, percent(row->total, all)))
			continue;
		shown++;
		fprintf(file, "%10llu %6.1f%% %10llu %6.1f%%  ",
		        (unsigned long long)row->self, percent(row->self, all),
		        (unsigned long long)row->total,
		        percent(row->total, all));
		if (by_line)
			fprintf(file, "%s:%u in ", row->frame->file,
			        row->frame->line);
		fprintf(file, "%s\n", row->frame->name);
	}
}

/* ---- two profiles ------------------------------------------------------ */

static struct sides count_sides(const struct profile *profile)
{
	struct sides sides = {0, 0};

	for (size_t i = 0; i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];

		if (profile->tags[count->tag].dump >= profile->new_from)
			sides.new += count->samples;
		else
			sides.old += count->samples;
	}
	return sides;
}

/* In percent of all samples, since the profiles may differ in length. */
static double change(uint64_t both, uint64_t new, const struct sides *all)
{
	return percent(new, all->new) - percent(both - new, all->old);
}

static double change_of_row(const struct row *row, const struct sides *all)
{
	return fmax(fabs(change(row->self, row->new_self, all)),
	            fabs(change(row->total, row->new_total, all)));
}

static int compare_changes(const void *left, const void *right, void *context)
{
	const struct sides *all = context;
	const struct row *a = left;
	const struct row *b = right;
	double first = fabs(change(a->self, a->new_self, all));
	double second = fabs(change(b->self, b->new_self, all));

	if (first != second)
		return first > second ? -1 : 1;
	first = change_of_row(a, all);
	second = change_of_row(b, all);
	if (first != second)
		return first > second ? -1 : 1;
	return compare_frames(a, b);
}

static void write_change(FILE *file, uint64_t both, uint64_t new,
                         const struct sides *all)
{
	fprintf(file, "%6.1f%% %6.1f%% %+7.1f  ", percent(both - new, all->old),
	        percent(new, all->new), change(both, new, all));
}

static void write_changes(FILE *file, const struct profile *profile,
                          struct table *table)
{
	struct sides all = count_sides(profile);
	size_t shown = 0;

	if (table->count > 0)
		qsort_r(table->rows, table->count, sizeof(*table->rows),
		        compare_changes, &all);
	fprintf(file,
	        "%llu samples before, %llu after; self and total of each "
	        "in percent\n",
	        (unsigned long long)all.old, (unsigned long long)all.new);
	fprintf(file, "%7s %7s %7s  %7s %7s %7s  %s\n", "old", "new", "self",
	        "old", "new", "total", "function");
	for (size_t i = 0; i < table->count; i++) {
		const struct row *row = &table->rows[i];

		if (!is_shown(profile, shown, change_of_row(row, &all)))
			continue;
		shown++;
		write_change(file, row->self, row->new_self, &all);
		write_change(file, row->total, row->new_total, &all);
		fprintf(file, "%s\n", row->frame->name);
	}
}

/* ---- the smaller tables ------------------------------------------------ */

static void write_count(FILE *file, uint64_t count, uint64_t whole,
                        const char *name)
{
	fprintf(file, "%10llu %6.1f%%  %s\n", (unsigned long long)count,
	        percent(count, whole), name);
}

static void write_states(FILE *file, const struct profile *profile)
{
	fprintf(file, "\n%10s %7s  %s\n", "samples", "", "VM state");
	for (size_t state = 0; state < STATE_COUNT; state++)
		if (profile->by_state[state] > 0)
			write_count(file, profile->by_state[state],
			            profile->sample_count,
			            sample_state_name(state));
	write_count(file, profile->sample_count, profile->sample_count,
	            "in all");
}

static void write_traces(FILE *file, const struct profile *profile)
{
	struct table traces = {0};
	size_t shown = 0;

	for (size_t i = 0; i < profile->count_count; i++) {
		const struct profile_count *count = &profile->counts[i];
		uint32_t trace = profile->tags[count->tag].trace;

		if (trace != 0)
			find_row(&traces, &profile->frames[trace], 0)->self +=
				count->samples;
	}
	if (traces.count > 0)
		qsort(traces.rows, traces.count, sizeof(*traces.rows),
		      compare_rows);
	for (size_t i = 0; i < traces.count; i++) {
		const struct row *row = &traces.rows[i];

		if (!is_shown(profile, shown,
		              percent(row->self, profile->sample_count)))
			continue;
		if (shown++ == 0)
			fprintf(file, "\n%10s %7s  %s\n", "samples", "",
			        "trace");
		write_count(file, row->self, profile->sample_count,
		            row->frame->name);
	}
	table_free(&traces);
}

static void write_lost(FILE *file, const struct profile *profile)
{
	uint64_t lost = profile_lost_count(profile);
	uint64_t whole = profile->sample_count + lost;

	fprintf(file, "\n%10s %7s  %s\n", "lost", "", "reason");
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		if (profile->lost[i] > 0)
			write_count(file, profile->lost[i], whole,
			            lost_reason_name(i));
	write_count(file, lost, whole, "in all");
}

/* ---- the whole --------------------------------------------------------- */

static void write_tables(FILE *file, const struct profile *profile,
                         struct table *functions, struct table *lines)
{
	write_rows(file, profile, functions, false);
	if (lines->count > 0 && !profile->is_live) {
		fputc('\n', file);
		write_rows(file, profile, lines, true);
	}
	write_states(file, profile);
	if (profile->is_live)
		return;
	write_traces(file, profile);
	if (profile->session.known)
		write_lost(file, profile);
}

void output_top(FILE *file, const struct profile *profile, const char *title)
{
	struct table functions = {0};
	struct table lines = {0};

	(void)title;
	collect(&functions, &lines, profile);
	if (profile->new_from > 0)
		write_changes(file, profile, &functions);
	else
		write_tables(file, profile, &functions, &lines);
	table_free(&functions);
	table_free(&lines);
}
