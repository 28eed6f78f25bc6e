// SPDX-License-Identifier: MIT
/*
 * Code without unwind rules, as assembler and some other compilers make it;
 * built with frame pointers and without. BARE_CALL is the function's name.
 */
#include <stdint.h>

__attribute__((visibility("default"), noinline)) uint64_t
BARE_CALL(uint64_t (*function)(uint64_t), uint64_t argument);

uint64_t BARE_CALL(uint64_t (*function)(uint64_t), uint64_t argument)
{
	volatile uint64_t room[4] = {argument, 0, 0, 1};

	room[1] = function(argument + room[2]);
	return room[1] + room[3];
}
