// SPDX-License-Identifier: MIT
/* One record of a perf.data; see perf_record.h. */
#include "perf_record.h"

#include <stdlib.h>
#include <string.h>

#include "profile/memory.h"

#define MISC_BUILD_ID       (1u << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID */
#define BUILD_ID_BYTES      20
#define READABLE_EXECUTABLE 5 /* as mmap() has them */
#define PRIVATE             2
#define PID_KERNEL          UINT32_MAX

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

void perf_record_put_mapping(struct perf_record *record,
                             const struct perf_mapping *mapping)
{
	/* Its length, padding, itself; or device and inode, not known. */
	uint8_t identity[4 + BUILD_ID_BYTES] = {
		(uint8_t)mapping->build_id_bytes};
	unsigned misc = mapping->is_kernel ? PERF_RECORD_MISC_KERNEL
	                                   : PERF_RECORD_MISC_USER;
	uint32_t pid = mapping->is_kernel ? PID_KERNEL : mapping->pid;

	if (mapping->build_id_bytes > 0) {
		misc |= MISC_BUILD_ID;
		memcpy(identity + 4, mapping->build_id,
		       mapping->build_id_bytes);
	}
	perf_record_begin(record, PERF_RECORD_MMAP2, misc);
	perf_record_put_u32(record, pid);
	perf_record_put_u32(record, pid);
	perf_record_put_u64(record, mapping->start);
	perf_record_put_u64(record, mapping->bytes);
	perf_record_put_u64(record, mapping->file_offset);
	perf_record_put(record, identity, sizeof(identity));
	perf_record_put_u32(record, READABLE_EXECUTABLE);
	perf_record_put_u32(record, PRIVATE);
	perf_record_put_string(record, mapping->path);
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
