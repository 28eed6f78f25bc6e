// SPDX-License-Identifier: MIT
/*
 * Profile of Callgrind, for KCachegrind and callgrind_annotate: samples of each
 * function by line, and of each call. A call counts once a stack, however often
 * a recursion repeats it.
 */
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "profile/id_map.h"
#include "profile/memory.h"
#include "profile/stack_view.h"

/* Samples of one line, or of all below one call of it. */
struct cost {
	uint32_t caller; /* frame */
	uint32_t callee; /* function; 0: samples of the line itself */
	uint32_t until;  /* entry up to which the call is on the stack */
	uint64_t samples;
};

struct callgrind {
	FILE *file;
	const struct profile *profile;
	uint32_t *functions; /* frame -> first frame of its function */
	struct cost *costs;
	size_t cost_count;
	size_t cost_capacity;
	struct id_map by_call; /* caller, callee -> cost */
	struct name_table
		files; /* those that are written: they have a number */
	struct name_table names;
};

/* ---- collecting -------------------------------------------------------- */

/* Frames of the same name and file are one function. */
static uint32_t *find_functions(const struct profile *profile)
{
	uint32_t *functions =
		memory_zeroed(profile->frame_count, sizeof(*functions));
	struct id_map known = {0};
	bool is_new;

	for (uint32_t i = 1; i < profile->frame_count; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		functions[i] = *id_map_add(&known, (uintptr_t)frame->name,
		                           (uintptr_t)frame->file, i, &is_new);
	}
	id_map_free(&known);
	return functions;
}

static struct cost *find_cost(struct callgrind *callgrind, uint32_t caller,
                              uint32_t callee)
{
	uint32_t added = (uint32_t)callgrind->cost_count;
	bool is_new;
	uint32_t index = *id_map_add(&callgrind->by_call, caller, callee, added,
	                             &is_new);

	if (is_new) {
		callgrind->costs = memory_grow(
			callgrind->costs, &callgrind->cost_capacity,
			++callgrind->cost_count, sizeof(*callgrind->costs));
		callgrind->costs[added] =
			(struct cost){.caller = caller, .callee = callee};
	}
	return &callgrind->costs[index];
}

static uint32_t frame_index(const struct callgrind *callgrind,
                            const struct stack_entry *entry)
{
	return entry->frame == NULL
	               ? 0
	               : (uint32_t)(entry->frame - callgrind->profile->frames);
}

static void collect(struct callgrind *callgrind, const struct stack_view *view)
{
	for (uint32_t i = 0; i < view->count; i++) {
		const struct stack_entry *entry = &view->entries[i];
		uint32_t frame = frame_index(callgrind, entry);
		uint32_t caller =
			frame_index(callgrind, &view->entries[entry->parent]);

		if (entry->self > 0)
			find_cost(callgrind, frame, 0)->samples += entry->self;
		if (caller == 0)
			continue;
		struct cost *call = find_cost(callgrind, caller,
		                              callgrind->functions[frame]);
		if (i < call->until)
			continue; /* recursion: counted already */
		call->samples += entry->total;
		call->until = entry->end;
	}
}

/* ---- writing ----------------------------------------------------------- */

/* Names are written once: "fn=(3) name", then "fn=(3)". */
static void write_name(struct callgrind *callgrind, struct name_table *written,
                       const char *key, const char *name)
{
	size_t known = written->count;
	uint32_t number = name_table_add(written, name, strlen(name));

	fprintf(callgrind->file, "%s=(%u)", key, number + 1);
	if (number >= known)
		fprintf(callgrind->file, " %s", name);
	fputc('\n', callgrind->file);
}

static const char *file_of(const struct profile_frame *frame)
{
	return frame->file != NULL && frame->file[0] != '\0' ? frame->file
	                                                     : "???";
}

static uint32_t line_of(const struct profile_frame *frame)
{
	return frame->line > 0 ? frame->line : frame->first_line;
}

static void write_cost(struct callgrind *callgrind, const struct cost *cost)
{
	const struct profile_frame *frames = callgrind->profile->frames;
	const struct profile_frame *caller = &frames[cost->caller];
	uint32_t line = line_of(caller);

	if (cost->callee == 0) {
		fprintf(callgrind->file, "%u %llu\n", line,
		        (unsigned long long)cost->samples);
		return;
	}
	const struct profile_frame *callee = &frames[cost->callee];
	write_name(callgrind, &callgrind->files, "cfi", file_of(callee));
	write_name(callgrind, &callgrind->names, "cfn", callee->name);
	fprintf(callgrind->file, "calls=%llu %u\n%u %llu\n",
	        (unsigned long long)cost->samples, callee->first_line, line,
	        (unsigned long long)cost->samples);
}

/* context: the function of each frame. */
static int compare_costs(const void *left, const void *right, void *context)
{
	const uint32_t *functions = context;
	const struct cost *a = left;
	const struct cost *b = right;
	uint32_t first = functions[a->caller];
	uint32_t second = functions[b->caller];

	if (first != second)
		return first < second ? -1 : 1;
	if (a->callee != b->callee)
		return a->callee < b->callee ? -1 : 1;
	return a->caller < b->caller ? -1 : a->caller > b->caller;
}

static void write_costs(struct callgrind *callgrind)
{
	const struct profile_frame *frames = callgrind->profile->frames;
	uint32_t function = UINT32_MAX;

	if (callgrind->cost_count == 0)
		return;
	qsort_r(callgrind->costs, callgrind->cost_count,
	        sizeof(*callgrind->costs), compare_costs, callgrind->functions);
	for (size_t i = 0; i < callgrind->cost_count; i++) {
		const struct cost *cost = &callgrind->costs[i];
		const struct profile_frame *frame = &frames[cost->caller];

		if (callgrind->functions[cost->caller] != function) {
			function = callgrind->functions[cost->caller];
			fputc('\n', callgrind->file);
			write_name(callgrind, &callgrind->files, "fl",
			           file_of(frame));
			write_name(callgrind, &callgrind->names, "fn",
			           frame->name ? frame->name : "[no stack]");
		}
		write_cost(callgrind, cost);
	}
}

void output_callgrind(FILE *file, const struct profile *profile,
                      const char *title)
{
	struct callgrind callgrind = {
		.file = file,
		.profile = profile,
		.functions = find_functions(profile),
	};
	struct stack_view view;

	(void)title; /* any bytes: a line of this format has no escapes */
	stack_view_open(&view, profile, VIEW_BY_FRAME);
	collect(&callgrind, &view);
	fprintf(file,
	        "# callgrind format\nversion: 1\ncreator: " PACKAGE_NAME
	        " " PACKAGE_VERSION
	        "\npositions: line\nevents: Samples\nsummary: %llu\n",
	        (unsigned long long)profile->sample_count);
	write_costs(&callgrind);
	stack_view_close(&view);
	free(callgrind.functions);
	free(callgrind.costs);
	id_map_free(&callgrind.by_call);
	name_table_free(&callgrind.files);
	name_table_free(&callgrind.names);
}
