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

/* Could both have been interrupted here? */
static bool agrees(const struct profile *profile,
                   const struct guest_sample *sample, enum guest_place place,
                   uint32_t trace)
{
	const struct profile_tag *tag = &profile->tags[sample->tag];
	bool native = is_native_leaf(profile, sample->node);

	switch (place) {
	case PLACE_TRACE:
		return tag->state == STATE_TRACE && tag->trace == trace &&
		       !native;
	case PLACE_VM: /* its C functions are native leaves, too */
		return tag->state != STATE_TRACE || native;
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

bool guest_samples_find(const struct guest_samples *samples, uint32_t thread_id,
                        enum guest_place place, uint32_t trace,
                        uint64_t time_ns, uint64_t max_ns, uint32_t *node,
                        int64_t *distance_ns)
{
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

		if ((forward ? later : earlier) > max_ns)
			return false;
		sample = &samples->list[forward ? after++ : --before];
		if (profile->tags[sample->tag].thread_id != thread_id ||
		    !agrees(profile, sample, place, trace))
			continue;
		*node = sample->node;
		*distance_ns = forward ? (int64_t)later : -(int64_t)earlier;
		return true;
	}
}
