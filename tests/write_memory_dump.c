// SPDX-License-Identifier: MIT
/*
 * Writes a memory profile to standard output, for scripts:
 *   write_memory_dump small       that of memory_fixture.h
 *   write_memory_dump large MIB   many events, few locations and live blocks
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/memory_fixture.h"

static size_t write_out(const void **data, size_t bytes, void *context)
{
	(void)context;
	return fwrite(*data, 1, bytes, stdout);
}

static void write_small(void)
{
	struct memory_dump dump = {0};

	memory_dump_write(&dump, 4096, 0);
	fwrite(dump.bytes, 1, dump.count, stdout);
	memory_dump_free(&dump);
}

/* 100 lines with 1000 live blocks in turn: each is freed before its address is
 * used again. */
static void write_large(uint64_t bytes)
{
	static struct sysprof_encoder encoder;
	static uint8_t buffer[65536];
	uint64_t address, written = 0, i;

	memprof_encoder_open(&encoder, buffer, sizeof(buffer), write_out, NULL);
	sysprof_write_prologue(&encoder);
	sysprof_write_proto(&encoder, 0x7f0000001000, "@large.lua", 10, 1);
	for (i = 0; written < bytes; i++, written += 15 + 9) {
		struct memprof_event_fields fields = {
			.event = MEMPROF_ALLOC,
			.source = MEMPROF_LUA,
			.source_value = 0x7f0000001000,
			.line = 1 + (uint32_t)(i % 100),
		};

		address = 0x7f1000000000 + i * 7919 % 1000 * 64;
		fields.new_address = address;
		fields.new_bytes = 48;
		if (i >= 1000) {
			struct memprof_event_fields end = {
				.event = MEMPROF_FREE,
				.source = MEMPROF_INTERNAL,
				.old_address = address,
				.old_bytes = 48,
			};

			memprof_write_event(&encoder, &end);
		}
		memprof_write_event(&encoder, &fields);
	}
	sysprof_write_end(&encoder);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "small") == 0) {
		write_small();
	} else if (argc == 3 && strcmp(argv[1], "large") == 0) {
		write_large(strtoull(argv[2], NULL, 10) << 20);
	} else {
		fputs("usage: write_memory_dump small | large MIB\n", stderr);
		return 2;
	}
	return fflush(stdout) != 0;
}
