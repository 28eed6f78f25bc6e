// SPDX-License-Identifier: MIT
/* Samples of a dump by time and place; see guest_samples.h. */
#include "guest_samples.h"

#include <stdlib.h>

#include "profile/memory.h"

struct guest_sample {
	uint64_t time_ns;
	uint32_t node;
	uint32_t tag;
};

static int compare_times(const void *left, const void *right)
{
	const struct guest_sample *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

void guest_samples_open(struct guest_samples *samples,
                        const struct profile *profile)
{
	*samples = (struct guest_samples){.profile = profile};
	samples->count = profile->moment_count;
	samples->list =
		memory_zeroed(samples->count + 1, sizeof(*samples->list));
	for (size_t i = 0; i < samples->count; i++)
		samples->list[i] = (struct guest_sample){
			profile->moments[i].time_ns,
			profile->moments[i].node,
			profile->moments[i].tag,
		};
	qsort(samples->list, samples->count, sizeof(*samples->list),
	      compare_times);
}

void guest_samples_close(struct guest_samples *samples)
{
	free(samples->list);
	samples->list = NULL;
}

/* The profiler sees the code of a trace no earlier than a sample in it: what
 * came before belongs to the first one seen. */
uint32_t guest_samples_trace(const struct guest_samples *samples,
                             uint64_t address, uint64_t time_ns)
{
	const struct profile *profile = samples->profile;
	uint32_t found = 0;

	for (size_t i = 0; i < profile->code_count; i++) {
		const struct profile_code *code = &profile->codes[i];

		if (address - code->start >= code->bytes)
			continue;
		if (found != 0 && code->time_ns > time_ns)
			break;
		found = code->trace;
	}
	return found;
}

/* The last one seen there before that time, or else the first one. */
uint32_t guest_samples_function(const struct guest_samples *samples,
                                uint64_t address, uint64_t time_ns)
{
	const struct profile *profile = samples->profile;
	uint32_t found = 0;

	for (size_t i = 0; i < profile->bytecode_count; i++) {
		const struct profile_bytecode *bytecode =
			&profile->bytecodes[i];

		if (address - bytecode->start >= bytecode->bytes)
			continue;
		if (found != 0 && bytecode->time_ns > time_ns)
			break;
		found = bytecode->frame;
	}
	return found;
}

bool guest_samples_has_thread(const struct guest_samples *samples,
                              uint32_t thread_id)
{
	const struct profile *profile = samples->profile;

	for (size_t i = 0; i < profile->tag_count; i++)
		if (profile->tags[i].thread_id == thread_id)
			return true;
	return false;
}

static bool is_native_leaf(const struct profile *profile, uint32_t node)
{
	return node != PROFILE_ROOT &&
	       profile->frames[profile->nodes[node].frame].kind == FRAME_HOST;
}

/* Frames of one function differ by their lines; strings are the profile's. */
static bool is_function(const struct profile_frame *frame,
                        const struct profile_frame *function)
{
	return frame->name == function->name && frame->file == function->file &&
	       frame->first_line == function->first_line;
}

/* Is it the innermost one of Lua? */
static bool runs_function(const struct profile *profile, uint32_t node,
                          uint32_t function)
{
	while (node != PROFILE_ROOT &&
	       profile->frames[profile->nodes[node].frame].kind != FRAME_LUA)
		node = profile->nodes[node].parent;
	return node != PROFILE_ROOT &&
	       is_function(&profile->frames[profile->nodes[node].frame],
	                   &profile->frames[function]);
}

/* Could both have been interrupted here? */
static bool agrees(const struct profile *profile,
                   const struct guest_sample *sample,
                   const struct guest_question *question)
{
	const struct profile_tag *tag = &profile->tags[sample->tag];
	bool native = is_native_leaf(profile, sample->node);

	if (tag->thread_id != question->thread_id)
		return false;
	switch (question->place) {
	case PLACE_TRACE:
		return tag->state == STATE_TRACE &&
		       tag->trace == question->trace && !native;
	case PLACE_VM: /* its C functions are native leaves, too */
		return (tag->state != STATE_TRACE || native) &&
		       (question->function == 0 ||
		        runs_function(profile, sample->node,
		                      question->function));
	case PLACE_NATIVE:
		return native;
	}
	return false;
}

/* Index of the first sample that is not earlier. */
static size_t find_time(const struct guest_samples *samples, uint64_t time_ns)
{
	size_t low = 0, high = samples->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->list[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool guest_samples_find(const struct guest_samples *samples,
                        const struct guest_question *question, uint32_t *node,
                        int64_t *distance_ns)
{
	uint64_t time_ns = question->time_ns;
	const struct profile *profile = samples->profile;
	size_t after = find_time(samples, time_ns);
	size_t before = after;

	/* Outwards on both sides, the nearer one first. */
	for (;;) {
		uint64_t later =
			after < samples->count
				? samples->list[after].time_ns - time_ns
				: UINT64_MAX;
		uint64_t earlier =
			before > 0 ? time_ns - samples->list[before - 1].time_ns
				   : UINT64_MAX;
		bool forward = later < earlier;
		const struct guest_sample *sample;

		if ((forward ? later : earlier) > question->max_ns)
			return false;
		sample = &samples->list[forward ? after++ : --before];
		if (!agrees(profile, sample, question))
			continue;
		*node = sample->node;
		*distance_ns = forward ? (int64_t)later : -(int64_t)earlier;
		return true;
	}
}
