// SPDX-License-Identifier: MIT
/*
 * Lua stacks that are being moved, in memory as it was recorded: the stack of a
 * coroutine in two places, of which one is free and has words of the allocator
 * in its first slots.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "load_sig.h"
#include "vm/layout.h"
#include "vm/moved_stack_sig.h"

#define THREAD     UINT64_C(0x7f12a4c03f18)
#define SLOTS      60
#define GROWN      100 /* slots of the new place */
#define WORDS      200 /* of native stack */
#define OVERWRITES 6   /* words of the allocator in a free block */

static const struct vm_layout *layout;
static struct moved_stacks moved;
static uint64_t old_place[SLOTS], new_place[GROWN];
static uint64_t registers[23], native_stack[WORDS];

static uint64_t address_of(const uint64_t *slot)
{
	return (uint64_t)slot;
}

static struct lua_stack stack_at(const uint64_t *start, uint32_t slots)
{
	return (struct lua_stack){.thread = THREAD,
	                          .start = address_of(start),
	                          .end = address_of(start + slots)};
}

/* A stack of GC64: the coroutine in its first slot, nothing that is twice on it. */
static void fill(uint64_t *slots, uint32_t count)
{
	uint32_t i;

	slots[0] = UINT64_C(0x1fff9) << 47 | THREAD;
	for (i = 1; i < count; i++)
		slots[i] = UINT64_C(0x7f12a4c10000) + UINT64_C(24) * i * i;
}

/* What lj_alloc keeps in a free block: links to others, and its size class. */
static void overwrite(uint64_t *slots)
{
	uint32_t i;

	for (i = 0; i < OVERWRITES - 1; i++)
		slots[i] = UINT64_C(0x7f12a4000010) + 64 * i;
	slots[OVERWRITES - 1] = 11;
}

static void set_up(void)
{
	struct error error;
	size_t i;

	for (i = 0; i < vm_layout_count && !layout; i++)
		if (vm_layouts[i].gc64)
			layout = &vm_layouts[i];
	ck_assert_ptr_nonnull(layout);
	ck_assert_int_eq(load_faults_catch(&error), 0);
	memset(&moved, 0, sizeof(moved));
	fill(old_place, SLOTS);
	memcpy(new_place, old_place, sizeof(old_place));
	memset(new_place + SLOTS, 0xff, sizeof(new_place) - sizeof(old_place));
	memset(registers, 0, sizeof(registers));
	memset(native_stack, 0, sizeof(native_stack));
}

static void tear_down(void)
{
	load_faults_release();
}

/* Pointers to slot 20 (base) and 12 (jit_base) of a place are followed to another
 * address, to the same slots of the stack that is in the new one. */
static void assert_followed(const uint64_t *from, const uint64_t *to_base,
                            const uint64_t *to_other)
{
	struct lua_stack now = stack_at(new_place, GROWN);
	uint64_t base = address_of(from + 20), other = address_of(from + 12);

	moved_stack_follow(&moved, &now, &base, &other);
	ck_assert_uint_eq(base, address_of(to_base));
	ck_assert_uint_eq(other, address_of(to_other));
}

/* ---- base in the old place ------------------------------------------------ */

START_TEST(a_base_in_the_stack_stays)
{
	assert_followed(new_place, new_place + 20, new_place + 12);
}
END_TEST

START_TEST(a_base_in_the_old_place_is_followed)
{
	overwrite(old_place);
	assert_followed(old_place, new_place + 20, new_place + 12);
}
END_TEST

START_TEST(no_jit_base_stays_none)
{
	struct lua_stack now = stack_at(new_place, GROWN);
	uint64_t base = address_of(old_place + 20), other = 0;

	overwrite(old_place);
	moved_stack_follow(&moved, &now, &base, &other);
	ck_assert_uint_eq(base, address_of(new_place + 20));
	ck_assert_uint_eq(other, 0);
}
END_TEST

/* The VM has allocated again, and what it has put there differs. */
START_TEST(a_place_with_other_words_is_not_believed)
{
	old_place[15]++;
	assert_followed(old_place, old_place + 20, old_place + 12);
}
END_TEST

START_TEST(a_place_seen_at_the_last_sample_is_followed_all_the_same)
{
	struct lua_stack before = stack_at(old_place, SLOTS);
	uint64_t base = address_of(old_place + 4), other = 0;

	moved_stack_follow(&moved, &before, &base, &other);
	ck_assert_uint_eq(base, address_of(old_place + 4));
	old_place[15]++;
	assert_followed(old_place, new_place + 20, new_place + 12);
}
END_TEST

/* Another coroutine has that place of the table, or had that of memory. */
START_TEST(a_place_seen_of_another_coroutine_is_not_followed)
{
	struct lua_stack before = stack_at(old_place, SLOTS);
	uint64_t base = address_of(old_place + 4), other = 0;

	before.thread += UINT64_C(64) * MOVED_STACKS;
	moved_stack_follow(&moved, &before, &base, &other);
	old_place[15]++;
	assert_followed(old_place, old_place + 20, old_place + 12);
}
END_TEST

/* Where the frames of a recursion are all alike, the base may be in any. */
START_TEST(of_two_places_that_fit_none_is_taken)
{
	uint32_t i;

	for (i = 1; i < SLOTS; i++)
		old_place[i] = new_place[i] = i % 2;
	assert_followed(old_place, old_place + 20, old_place + 12);
}
END_TEST

START_TEST(a_base_between_slots_stays)
{
	struct lua_stack before = stack_at(old_place, SLOTS);
	struct lua_stack now = stack_at(new_place, GROWN);
	uint64_t base = address_of(old_place + 4), other = 0;

	moved_stack_follow(&moved, &before, &base, &other);
	base = address_of(old_place + 20) + 4;
	moved_stack_follow(&moved, &now, &base, &other);
	ck_assert_uint_eq(base, address_of(old_place + 20) + 4);
}
END_TEST

START_TEST(an_old_place_that_is_unmapped_is_not_followed)
{
	struct lua_stack now = stack_at(new_place, GROWN);
	uint64_t *page =
		mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t base = address_of(page + 20), other = address_of(page + 12);

	ck_assert_ptr_ne(page, MAP_FAILED);
	moved_stack_follow(&moved, &now, &base, &other);
	ck_assert_uint_eq(base, address_of(page + 20));
	ck_assert_uint_eq(other, address_of(page + 12));
	munmap(page, 8192);
}
END_TEST

/* ---- stack still in the old place ----------------------------------------- */

static uint64_t find_copy(void)
{
	struct lua_stack old = stack_at(old_place, SLOTS);
	struct live_words words = {
		.registers = address_of(registers),
		.register_count = sizeof(registers) / sizeof(registers[0]),
		.stack_pointer = address_of(native_stack),
	};

	return moved_stack_find_copy(&words, layout, &old);
}

START_TEST(a_copy_is_found_in_a_register)
{
	overwrite(old_place);
	registers[0] = 1;
	registers[1] = UINT64_MAX;
	registers[2] = address_of(old_place);
	registers[22] = address_of(new_place);
	ck_assert_uint_eq(find_copy(), address_of(new_place));
}
END_TEST

START_TEST(a_copy_is_found_on_the_native_stack)
{
	overwrite(old_place);
	native_stack[0] = address_of(native_stack + 7);
	native_stack[100] = address_of(new_place);
	ck_assert_uint_eq(find_copy(), address_of(new_place));
}
END_TEST

START_TEST(nothing_is_found_where_nothing_points_to_it)
{
	overwrite(old_place);
	registers[2] = address_of(new_place + 1);
	native_stack[WORDS - 1] = address_of(new_place);
	ck_assert_uint_eq(find_copy(), 0);
}
END_TEST

START_TEST(the_stack_is_no_copy_of_itself)
{
	registers[0] = address_of(old_place);
	ck_assert_uint_eq(find_copy(), 0);
}
END_TEST

START_TEST(a_copy_starts_with_its_coroutine)
{
	overwrite(old_place);
	registers[0] = address_of(new_place);
	new_place[0] += 64;
	ck_assert_uint_eq(find_copy(), 0);
}
END_TEST

START_TEST(a_copy_has_the_same_words)
{
	overwrite(old_place);
	registers[0] = address_of(new_place);
	new_place[OVERWRITES]++;
	ck_assert_uint_eq(find_copy(), 0);
}
END_TEST

/* The allocator has words of its own at the end of a free block, too. */
START_TEST(the_last_words_may_differ)
{
	registers[0] = address_of(new_place);
	old_place[SLOTS - 1] = 496;
	old_place[SLOTS - 2]++;
	ck_assert_uint_eq(find_copy(), address_of(new_place));
	old_place[SLOTS - 3]++;
	ck_assert_uint_eq(find_copy(), 0);
}
END_TEST

START_TEST(what_is_not_mapped_is_no_copy)
{
	uint64_t *page =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(page, MAP_FAILED);
	registers[0] = address_of(page);
	registers[1] = address_of(new_place);
	ck_assert_uint_eq(find_copy(), address_of(new_place));
	munmap(page, 4096);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("moved_stack");
	TCase *base = tcase_create("base in the old place");
	TCase *copy = tcase_create("stack in the old place");
	SRunner *runner = srunner_create(suite);
	int failed_count;

	tcase_add_checked_fixture(base, set_up, tear_down);
	tcase_add_test(base, a_base_in_the_stack_stays);
	tcase_add_test(base, a_base_in_the_old_place_is_followed);
	tcase_add_test(base, no_jit_base_stays_none);
	tcase_add_test(base, a_place_with_other_words_is_not_believed);
	tcase_add_test(
		base, a_place_seen_at_the_last_sample_is_followed_all_the_same);
	tcase_add_test(base, a_place_seen_of_another_coroutine_is_not_followed);
	tcase_add_test(base, of_two_places_that_fit_none_is_taken);
	tcase_add_test(base, a_base_between_slots_stays);
	tcase_add_test(base, an_old_place_that_is_unmapped_is_not_followed);
	suite_add_tcase(suite, base);
	tcase_add_checked_fixture(copy, set_up, tear_down);
	tcase_add_test(copy, a_copy_is_found_in_a_register);
	tcase_add_test(copy, a_copy_is_found_on_the_native_stack);
	tcase_add_test(copy, nothing_is_found_where_nothing_points_to_it);
	tcase_add_test(copy, the_stack_is_no_copy_of_itself);
	tcase_add_test(copy, a_copy_starts_with_its_coroutine);
	tcase_add_test(copy, a_copy_has_the_same_words);
	tcase_add_test(copy, the_last_words_may_differ);
	tcase_add_test(copy, what_is_not_mapped_is_no_copy);
	suite_add_tcase(suite, copy);
	srunner_run_all(runner, CK_NORMAL);
	failed_count = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_count > 0;
}
