// SPDX-License-Identifier: MIT
/* Stacks of a memory profile; see memory_stacks.h. */
#include "memory_stacks.h"

#include <math.h>

#include "profile/select.h"

static double weight_of(const struct allocation_weights *weights,
                        enum memory_weight weight)
{
	switch (weight) {
	case WEIGHT_ALLOC_BYTES:
		return weights->alloc_bytes;
	case WEIGHT_ALLOC_COUNT:
		return weights->alloc_count;
	case WEIGHT_HELD_BYTES:
		return weights->held_bytes;
	}
	return 0;
}

void memory_stacks(struct memory_profile *memory, enum memory_weight weight,
                   struct profile *stacks)
{
	const struct selection selection = {.lines = LINES_ALL};
	struct profile *profile = &memory->profile;
	struct profile_tag tag = {
		.state = STATE_LFUNC,
		.dump = profile_dump(profile, "memory"),
	};
	uint32_t tag_index = profile_tag(profile, &tag);

	for (size_t i = 0; i < memory->allocations.weight_count; i++) {
		double samples = round(
			weight_of(&memory->allocations.weights[i], weight));

		if (samples >= 1 && samples < 0x1p63)
			profile_add_samples(profile, (uint32_t)i, tag_index,
			                    (uint64_t)samples);
	}
	profile_select(stacks, profile, &selection);
}
