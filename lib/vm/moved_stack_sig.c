// SPDX-License-Identifier: MIT
/*
 * Lua stacks that are being moved. Runs in the signal handler.
 *
 * The old place is freed before anything points to the new one. Its contents are
 * whole until the VM allocates again, but for the words at its start that the
 * allocator links free memory by. So the two places can be told from others by
 * what they have in common.
 */
#include "moved_stack_sig.h"

#include "../load_sig.h"

/* The VM's allocator overwrites no more than this at the start of a block. */
#define OVERWRITTEN_BYTES 48
/* Nor at its end. */
#define ALLOCATOR_END_BYTES 16
/* This is enough to know a copy by, that starts with the right thread. */
#define COMPARED_BYTES_MAX 1024
/* No stack is smaller: it starts with 40 slots and some more. */
#define STACK_BYTES_MIN 320
/* Longer stacks are not searched, for the handler's time. */
#define SEARCHED_BYTES_MAX 16384
/* The code that moves stacks is this close to the top of the native stack. */
#define NATIVE_WORDS_MAX 128

/* A pointer into where the stack was before it moved is shifted along. */
static uint64_t follow_move(const struct lua_stack *old,
                            const struct lua_stack *now, uint64_t pointer)
{
	if (pointer < old->start || pointer > old->end)
		return pointer;
	return pointer - old->start + now->start;
}

/* Have both places the same words, from behind what may be overwritten up to
 * bytes? Compared from the top down, where different ones differ soonest. */
static bool is_copy(uint64_t one, uint64_t other, uint64_t bytes)
{
	uint64_t word, other_word;

	if (bytes < STACK_BYTES_MIN)
		bytes = STACK_BYTES_MIN;
	for (bytes -= 8; bytes >= OVERWRITTEN_BYTES; bytes -= 8)
		if (!load_u64(one + bytes, &word) ||
		    !load_u64(other + bytes, &other_word) || word != other_word)
			return false;
	return true;
}

/* Where was the stack, if base points into it? Only one place may do: the frames
 * of a function that calls itself can be alike. */
static bool find_old(const struct lua_stack *stack, uint64_t base,
                     struct lua_stack *old)
{
	uint64_t bytes_max = stack->end - stack->start, bytes;
	bool found = false;

	if (bytes_max > SEARCHED_BYTES_MAX)
		bytes_max = SEARCHED_BYTES_MAX;
	for (bytes = 8; bytes <= bytes_max; bytes += 8) {
		if (!is_copy(base - bytes, stack->start, bytes))
			continue;
		if (found)
			return false;
		found = true;
		old->start = base - bytes;
		old->end = old->start + (stack->end - stack->start);
	}
	return found;
}

void moved_stack_follow(struct moved_stacks *moved,
                        const struct lua_stack *stack, uint64_t *base,
                        uint64_t *other)
{
	struct lua_stack *seen =
		&moved->seen[(stack->thread >> 6) % MOVED_STACKS];
	struct lua_stack old;

	if (*base >= stack->start && *base <= stack->end) {
		*seen = *stack;
		return;
	}
	if (*base & 7)
		return;
	if (!find_old(stack, *base, &old)) {
		if (seen->thread != stack->thread)
			return;
		old = *seen;
	}
	*base = follow_move(&old, stack, *base);
	*other = follow_move(&old, stack, *other);
}

/* Has the stack a copy at start? It would be known by its lua_State. */
static bool is_copy_of(const struct vm_layout *layout,
                       const struct lua_stack *stack, uint64_t start)
{
	const struct lua_stack copy = {.start = start};
	uint64_t bytes = stack->end - stack->start - ALLOCATOR_END_BYTES;
	struct lua_frame contents;

	if (bytes > COMPARED_BYTES_MAX)
		bytes = COMPARED_BYTES_MAX;
	return !(start & 7) && start != stack->start &&
	       load_address_ok(start) &&
	       lua_frame_read(layout, stack_bottom(layout, &copy), &contents) &&
	       contents.function == stack->thread &&
	       is_copy(start, stack->start, bytes);
}

uint64_t moved_stack_find_copy(const struct live_words *words,
                               const struct vm_layout *layout,
                               const struct lua_stack *stack)
{
	uint64_t address = words->registers, word;
	uint32_t i;

	for (i = 0; i < words->register_count + NATIVE_WORDS_MAX; i++) {
		if (i == words->register_count)
			address = words->stack_pointer;
		if (!load_u64(address, &word))
			return 0;
		if (is_copy_of(layout, stack, word))
			return word;
		address += 8;
	}
	return 0;
}
