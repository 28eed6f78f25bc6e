// SPDX-License-Identifier: MIT
/*
 * Runs generated functions that a jitdump describes, in directory argv[1], for
 * about a second. Each spins in two loops, of lines 10 and 20 of spin.lua, with
 * a frame of its own size and the frame pointer used for counting. Needs
 * nothing of LuaJIT.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "perfmap/jitdump.h"

#define FUNCTIONS      12
#define FUNCTION_BYTES 256
#define SECOND_LOOP    16

typedef void (*spin_function)(uint64_t rounds);

/* push rbp; sub rsp, frame; 2 x (mov rbp, rdi; dec rbp; jnz); add; pop; ret */
static size_t generate(uint8_t *code, uint8_t frame_bytes)
{
	static const uint8_t pattern[] = {
		0x55, 0x48, 0x83, 0xec, 0,    0x48, 0x89, 0xfd, 0x48,
		0xff, 0xcd, 0x75, 0xfb, 0x48, 0x89, 0xfd, 0x48, 0xff,
		0xcd, 0x75, 0xfb, 0x48, 0x83, 0xc4, 0,    0x5d, 0xc3,
	};

	memcpy(code, pattern, sizeof(pattern));
	code[4] = frame_bytes;
	code[24] = frame_bytes;
	return sizeof(pattern);
}

static int describe(struct jitdump *dump, const uint8_t *code, size_t bytes,
                    int number, uint32_t frame_bytes)
{
	static const struct jitdump_saved saved[] = {{6, 2}};
	uint64_t address = (uint64_t)(uintptr_t)code;
	const struct jitdump_line lines[] = {
		{address, 10, "spin.lua"},
		{address + SECOND_LOOP - 3, 20, "spin.lua"},
	};
	struct timespec now;
	char name[32];
	struct jitdump_code record = {
		.thread_id = (uint32_t)getpid(),
		.address = address,
		.bytes = bytes,
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

__attribute__((noinline)) static void call(spin_function function)
{
	function(200000);
	/* No tail call: this function is to be on the stack. */
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	uint8_t *area = mmap(NULL, FUNCTIONS * FUNCTION_BYTES,
	                     PROT_READ | PROT_WRITE | PROT_EXEC,
	                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct jitdump dump;

	if (argc != 2 || area == MAP_FAILED || jitdump_open(&dump, argv[1]))
		return EXIT_FAILURE;
	for (int i = 0; i < FUNCTIONS; i++) {
		uint8_t *code = area + i * FUNCTION_BYTES;
		uint8_t frame_bytes = (uint8_t)(8 + 8 * i);
		size_t bytes = generate(code, frame_bytes);

		if (describe(&dump, code, bytes, i, frame_bytes) != 0)
			return EXIT_FAILURE;
	}
	while (clock() < CLOCKS_PER_SEC)
		for (int i = 0; i < FUNCTIONS; i++)
			call((spin_function)(uintptr_t)(area +
			                                i * FUNCTION_BYTES));
	return EXIT_SUCCESS;
}
