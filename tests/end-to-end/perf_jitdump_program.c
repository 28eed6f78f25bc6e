// SPDX-License-Identifier: MIT
/*
 * Runs generated functions that a jitdump describes, in directory argv[1], for
 * about a second. Each spins in two loops, of lines 10 and 20 of spin.lua, with
 * a frame of its own size and the frame pointer used for counting. Needs
 * nothing of LuaJIT.
 *
 * argv[2]: "apart"; or "packed", as LuaJIT puts traces, each below the one
 * before; or "readable", with a mapping of the jitdump that is not executable, as
 * argv[3]/jit-<pid>.dump.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "perfmap/jitdump.h"
#include "spin_code.h"

#define FUNCTIONS    12
#define APART_BYTES  256
#define PACKED_BYTES 32

static int describe(struct jitdump *dump, const uint8_t *code, int number,
                    uint32_t frame_bytes)
{
	static const struct jitdump_saved saved[] = {{6, 2}};
	uint64_t address = (uint64_t)(uintptr_t)code;
	const struct jitdump_line lines[] = {
		{address, 10, "spin.lua"},
		{address + SPIN_SECOND_LOOP, 20, "spin.lua"},
	};
	struct timespec now;
	char name[32];
	struct jitdump_code record = {
		.thread_id = (uint32_t)getpid(),
		.address = address,
		.bytes = SPIN_BYTES,
		.contents = code,
		.name = name,
		.name_bytes = (size_t)snprintf(name, sizeof(name),
	                                       "TRACE_%d spin.lua:9", number),
		.lines = lines,
		.line_count = 2,
		.frame = {true, frame_bytes + 16, saved, 1},
	};

	clock_gettime(CLOCK_MONOTONIC, &now);
	record.time_ns =
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return jitdump_append(dump, &record);
}

/* perf has seen the executable mapping where the file was before. */
static bool map_readable(const struct jitdump *dump, const char *directory)
{
	char path[JITDUMP_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/jit-%ld.dump", directory,
	         (long)getpid());
	return rename(dump->path, path) == 0 &&
	       munmap(dump->marker, (size_t)sysconf(_SC_PAGESIZE)) == 0 &&
	       mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_PRIVATE,
	            dump->fd, 0) != MAP_FAILED;
}

int main(int argc, char **argv)
{
	uint8_t *area = mmap(NULL, FUNCTIONS * APART_BYTES,
	                     PROT_READ | PROT_WRITE | PROT_EXEC,
	                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *functions[FUNCTIONS];
	struct jitdump dump;
	size_t step;

	if (argc < 3 || area == MAP_FAILED || jitdump_open(&dump, argv[1]))
		return EXIT_FAILURE;
	if (argc == 4 && !map_readable(&dump, argv[3]))
		return EXIT_FAILURE;
	step = strcmp(argv[2], "packed") == 0 ? PACKED_BYTES : APART_BYTES;
	for (int i = 0; i < FUNCTIONS; i++) {
		uint8_t *code = area + (size_t)(FUNCTIONS - 1 - i) * step;
		uint8_t frame_bytes = (uint8_t)(8 + 8 * i);

		spin_generate(code, frame_bytes);
		functions[i] = code;
		if (describe(&dump, code, i, frame_bytes) != 0)
			return EXIT_FAILURE;
	}
	while (clock() < CLOCKS_PER_SEC)
		for (int i = 0; i < FUNCTIONS; i++)
			spin_call(functions[i]);
	return EXIT_SUCCESS;
}
