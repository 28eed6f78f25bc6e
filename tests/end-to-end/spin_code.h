// SPDX-License-Identifier: MIT
/* Generated code that the tests with real perf sample: x86-64. */
#ifndef TESTS_SPIN_CODE_H
#define TESTS_SPIN_CODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SPIN_SECOND_LOOP 13
#define SPIN_BYTES       27
#define SPIN_ROUNDS      200000

typedef void (*spin_function)(uint64_t rounds);

/* push rbp; sub rsp, frame; 2 x (mov rbp, rdi; dec rbp; jnz); add; pop; ret */
static inline void spin_generate(uint8_t *code, uint8_t frame_bytes)
{
	static const uint8_t pattern[SPIN_BYTES] = {
		0x55, 0x48, 0x83, 0xec, 0,    0x48, 0x89, 0xfd, 0x48,
		0xff, 0xcd, 0x75, 0xfb, 0x48, 0x89, 0xfd, 0x48, 0xff,
		0xcd, 0x75, 0xfb, 0x48, 0x83, 0xc4, 0,    0x5d, 0xc3,
	};

	memcpy(code, pattern, sizeof(pattern));
	code[4] = frame_bytes;
	code[24] = frame_bytes;
}

__attribute__((noinline)) static void spin_call(const uint8_t *code)
{
	((spin_function)(uintptr_t)code)(SPIN_ROUNDS);
	/* No tail call: this function is to be on the stack. */
	__asm__ volatile("");
}

#endif
