// SPDX-License-Identifier: MIT
/*
 * Tables for a terminal: functions by samples of their own and with all they
 * called, samples by VM state, samples lost by reason.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "profile/memory.h"
#include "profile/stack_view.h"
#include "stream/frame_name.h"

struct function_row {
	const char *name;
	uint64_t self;  /* samples in it */
	uint64_t total; /* samples in which it is on the stack, each once */
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct function_row *a = left;
	const struct function_row *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->name == NULL || b->name == NULL) /* rows without samples */
		return (a->name == NULL) - (b->name == NULL);
	return strcmp(a->name, b->name);
}

/* Indexed by the number of the name; numbers without samples have none. */
static struct function_row *function_rows(const struct profile *profile,
                                          const struct stack_view *view)
{
	size_t count = profile->frame_count;
	struct function_row *rows = memory_zeroed(count, sizeof(*rows));
	/* Of each name: up to which entry it is on the stack. */
	uint32_t *until = memory_zeroed(count, sizeof(*until));

	for (size_t i = 1; i < view->count; i++) {
		const struct stack_entry *entry = &view->entries[i];
		struct function_row *row = &rows[entry->name];

		row->name = entry->frame->name;
		row->self += entry->self;
		if (i < until[entry->name])
			continue; /* recursion: counted already */
		row->total += entry->total;
		until[entry->name] = entry->end;
	}
	free(until);
	return rows;
}

static void write_functions(FILE *file, const struct profile *profile)
{
	struct stack_view view;

	stack_view_open(&view, profile, VIEW_BY_NAME);
	struct function_row *rows = function_rows(profile, &view);
	qsort(rows, profile->frame_count, sizeof(*rows), compare_rows);
	fprintf(file, "%10s %7s %10s %7s  %s\n", "self", "self%", "total",
	        "total%", "function");
	for (size_t i = 0; rows[i].total > 0; i++) {
		fprintf(file, "%10llu %6.1f%% %10llu %6.1f%%  %s\n",
		        (unsigned long long)rows[i].self,
		        percent(rows[i].self, profile->sample_count),
		        (unsigned long long)rows[i].total,
		        percent(rows[i].total, profile->sample_count),
		        rows[i].name);
	}
	free(rows);
	stack_view_close(&view);
}

static void write_count(FILE *file, uint64_t count, uint64_t whole,
                        const char *name)
{
	fprintf(file, "%10llu %6.1f%%  %s\n", (unsigned long long)count,
	        percent(count, whole), name);
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

void output_top(FILE *file, const struct profile *profile, const char *title)
{
	(void)title;
	write_functions(file, profile);
	fprintf(file, "\n%10s %7s  %s\n", "samples", "", "VM state");
	for (size_t state = 0; state < STATE_COUNT; state++)
		if (profile->by_state[state] > 0)
			write_count(file, profile->by_state[state],
			            profile->sample_count,
			            sample_state_name(state));
	write_count(file, profile->sample_count, profile->sample_count,
	            "in all");
	if (profile->session.known)
		write_lost(file, profile);
}
