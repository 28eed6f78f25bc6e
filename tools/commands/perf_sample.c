// SPDX-License-Identifier: MIT
/* Fields of a sample; see perf_sample.h and the comment at PERF_RECORD_SAMPLE in
 * linux/perf_event.h. */
#include "perf_sample.h"

#include <string.h>

#include "perf_file.h"

/* One step through a record's body. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool good;
};

static const uint8_t *take(struct cursor *cursor, uint64_t bytes)
{
	const uint8_t *at = cursor->at;

	if (bytes > (uint64_t)(cursor->end - at)) {
		cursor->good = false;
		return at;
	}
	cursor->at += bytes;
	return at;
}

static uint64_t take_u64(struct cursor *cursor)
{
	uint64_t number = 0;
	const uint8_t *at = take(cursor, sizeof(number));

	if (cursor->good)
		memcpy(&number, at, sizeof(number));
	return number;
}

static uint32_t take_u32(struct cursor *cursor)
{
	uint32_t number = 0;
	const uint8_t *at = take(cursor, sizeof(number));

	if (cursor->good)
		memcpy(&number, at, sizeof(number));
	return number;
}

const char *perf_sample_refusal(const struct perf_event_attr *attribute)
{
	if ((attribute->sample_type & PERF_SAMPLE_READ) != 0)
		return "it has groups of events; record them one by one";
	if ((attribute->sample_type & PERF_SAMPLE_TID) == 0 ||
	    (attribute->sample_type & PERF_SAMPLE_TIME) == 0 ||
	    (attribute->sample_type & PERF_SAMPLE_IP) == 0)
		return "its samples have no address, thread or time";
	return NULL;
}

size_t perf_sample_event(const struct perf_file *file,
                         const struct perf_event_header *record)
{
	uint64_t type = file->attributes[0].sample_type;
	struct cursor cursor = {
		.at = (const uint8_t *)(record + 1),
		.end = (const uint8_t *)record + record->size,
		.good = true,
	};

	if (file->attribute_count == 1)
		return 0;
	if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
		return perf_file_event(file, take_u64(&cursor));
	if ((type & PERF_SAMPLE_ID) == 0)
		return 0;
	take(&cursor, 8 * (uint64_t)(((type & PERF_SAMPLE_IP) != 0) +
	                             ((type & PERF_SAMPLE_TID) != 0) +
	                             ((type & PERF_SAMPLE_TIME) != 0) +
	                             ((type & PERF_SAMPLE_ADDR) != 0)));
	return perf_file_event(file, take_u64(&cursor));
}

static void read_head(struct perf_sample *sample, uint64_t type,
                      struct cursor *cursor)
{
	if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
		take_u64(cursor);
	sample->ip = take_u64(cursor);
	sample->pid = take_u32(cursor);
	sample->thread_id = take_u32(cursor);
	sample->time_ns = take_u64(cursor);
	take(cursor, 8 * (uint64_t)(((type & PERF_SAMPLE_ADDR) != 0) +
	                            ((type & PERF_SAMPLE_ID) != 0) +
	                            ((type & PERF_SAMPLE_STREAM_ID) != 0) +
	                            ((type & PERF_SAMPLE_CPU) != 0) +
	                            ((type & PERF_SAMPLE_PERIOD) != 0)));
}

static void skip_middle(const struct perf_event_attr *attribute,
                        struct cursor *cursor)
{
	uint64_t type = attribute->sample_type;

	if ((type & PERF_SAMPLE_RAW) != 0)
		take(cursor, take_u32(cursor));
	if ((type & PERF_SAMPLE_BRANCH_STACK) != 0) {
		uint64_t count = take_u64(cursor);

		if ((attribute->branch_sample_type &
		     PERF_SAMPLE_BRANCH_HW_INDEX) != 0)
			take_u64(cursor);
		take(cursor, count < UINT16_MAX ? 24 * count : UINT64_MAX);
	}
}

static void read_registers(struct perf_sample *sample,
                           const struct perf_event_attr *attribute,
                           struct cursor *cursor)
{
	uint64_t mask = attribute->sample_regs_user;
	uint64_t abi = take_u64(cursor);
	const uint8_t *registers = cursor->at;

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	take(cursor, 8 * (uint64_t)__builtin_popcountll(mask));
	if (!cursor->good || abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	sample->registers = registers;
	sample->register_mask = mask;
}

bool perf_sample_register(const struct perf_sample *sample, unsigned number,
                          uint64_t *value)
{
	uint64_t bit = UINT64_C(1) << number;

	if (!sample->registers || (sample->register_mask & bit) == 0)
		return false;
	memcpy(value,
	       sample->registers +
	               8 * __builtin_popcountll(sample->register_mask &
	                                        (bit - 1)),
	       sizeof(*value));
	return true;
}

static void read_stack(struct perf_sample *sample,
                       const struct perf_event_attr *attribute,
                       struct cursor *cursor)
{
	uint64_t type = attribute->sample_type;
	uint64_t bytes;

	if ((type & PERF_SAMPLE_REGS_USER) != 0)
		read_registers(sample, attribute, cursor);
	if ((type & PERF_SAMPLE_STACK_USER) == 0)
		return;
	bytes = take_u64(cursor);
	if (bytes != 0)
		take(cursor, bytes < UINT16_MAX ? bytes + 8 : UINT64_MAX);
}

bool perf_sample_read(struct perf_sample *sample,
                      const struct perf_event_attr *attribute,
                      const struct perf_event_header *record)
{
	struct cursor cursor = {
		.at = (const uint8_t *)(record + 1),
		.end = (const uint8_t *)record + record->size,
		.good = true,
	};

	*sample = (struct perf_sample){.before = cursor.at, .end = cursor.end};
	read_head(sample, attribute->sample_type, &cursor);
	sample->chain_part = cursor.at;
	if ((attribute->sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
		sample->chain_count = take_u64(&cursor);
		sample->chain = (const uint64_t *)(const void *)cursor.at;
		take(&cursor, sample->chain_count < UINT16_MAX
		                      ? 8 * sample->chain_count
		                      : UINT64_MAX);
	}
	sample->middle = cursor.at;
	skip_middle(attribute, &cursor);
	sample->stack = cursor.at;
	read_stack(sample, attribute, &cursor);
	sample->rest = cursor.at;
	return cursor.good;
}
