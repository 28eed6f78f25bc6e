// SPDX-License-Identifier: MIT
/* One record of a perf.data; see perf_record.h. */
#include "perf_record.h"

#include <stdlib.h>
#include <string.h>

#include "profile/memory.h"

void perf_record_begin(struct perf_record *record, uint32_t type, unsigned misc)
{
	record->header = (struct perf_event_header){
		.type = type,
		.misc = (uint16_t)misc,
	};
	record->used = 0;
}

void perf_record_put(struct perf_record *record, const void *bytes,
                     size_t count)
{
	record->body = memory_grow(record->body, &record->capacity,
	                           record->used + count + 1, 1);
	if (count > 0)
		memcpy(record->body + record->used, bytes, count);
	record->used += count;
}

void perf_record_put_u32(struct perf_record *record, uint32_t number)
{
	perf_record_put(record, &number, sizeof(number));
}

void perf_record_put_u64(struct perf_record *record, uint64_t number)
{
	perf_record_put(record, &number, sizeof(number));
}

void perf_record_put_string(struct perf_record *record, const char *string)
{
	static const char zeros[8];
	size_t bytes = strlen(string) + 1;

	perf_record_put(record, string, bytes);
	perf_record_put(record, zeros, (8 - bytes % 8) % 8);
}

size_t perf_record_end(struct perf_record *record, FILE *file)
{
	record->header.size = (uint16_t)(sizeof(record->header) + record->used);
	fwrite(&record->header, sizeof(record->header), 1, file);
	fwrite(record->body, 1, record->used, file);
	return record->header.size;
}

void perf_record_free(struct perf_record *record)
{
	free(record->body);
	record->body = NULL;
	record->capacity = 0;
}
