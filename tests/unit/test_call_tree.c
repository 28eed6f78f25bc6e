// SPDX-License-Identifier: MIT
/* Node numbers of the call tree: same stack, same number; bounded. */
#include "stream/call_tree.h"

#include <check.h>
#include <string.h>

#include "dump_fixture.h"

static struct call_tree tree;

static uint32_t find(uint32_t parent, uint8_t kind, uint64_t value,
                     uint32_t line, uint8_t flags, bool expected_new)
{
	struct stack_node node = {
		.kind = kind, .value = value, .line = line, .flags = flags};
	bool is_new;
	uint32_t number = call_tree_find(&tree, parent, &node, &is_new);

	ck_assert(is_new == expected_new);
	return number;
}

START_TEST(every_property_makes_another_node)
{
	ck_assert(call_tree_open(&tree, CALL_TREE_NODES_DEFAULT));
	ck_assert_uint_eq(find(0, FRAME_LUA, 5, 10, 0, true), 1);
	ck_assert_uint_eq(find(1, FRAME_LUA, 5, 10, 0, true), 2);
	ck_assert_uint_eq(find(0, FRAME_FAST, 5, 10, 0, true), 3);
	ck_assert_uint_eq(find(0, FRAME_LUA, 6, 10, 0, true), 4);
	ck_assert_uint_eq(find(0, FRAME_LUA, 5, 11, 0, true), 5);
	ck_assert_uint_eq(find(0, FRAME_LUA, 5, 10, FRAME_FLAG_COMPILED, true),
	                  6);
	ck_assert_uint_eq(find(0, FRAME_LUA, 5, 10, 0, false), 1);
	ck_assert_uint_eq(find(1, FRAME_LUA, 5, 10, 0, false), 2);
	ck_assert_uint_eq(find(0, FRAME_LUA, 5, 10, FRAME_FLAG_COMPILED, false),
	                  6);
	call_tree_close(&tree);
}
END_TEST

START_TEST(a_full_tree_takes_no_more_but_still_finds)
{
	const uint32_t limit = 5000;

	ck_assert(call_tree_open(&tree, limit));
	for (uint32_t i = 0; i < limit; i++)
		ck_assert_uint_eq(find(i, FRAME_HOST, i * 16, 0, 0, true),
		                  i + 1);
	ck_assert_uint_eq(find(0, FRAME_HOST, 1, 0, 0, false), 0);
	for (uint32_t i = 0; i < limit; i++)
		ck_assert_uint_eq(find(i, FRAME_HOST, i * 16, 0, 0, false),
		                  i + 1);
	call_tree_reset(&tree);
	ck_assert_uint_eq(find(0, FRAME_HOST, 1, 0, 0, true), 1);
	ck_assert_uint_eq(find(7, FRAME_HOST, 7 * 16, 0, 0, true), 2);
	call_tree_close(&tree);
}
END_TEST

START_TEST(limits_out_of_range_are_refused)
{
	ck_assert(!call_tree_open(&tree, 0));
	ck_assert(!call_tree_open(&tree, UINT32_MAX));
	ck_assert(call_tree_open(&tree, 1));
	ck_assert_uint_eq(find(0, FRAME_HOST, 1, 0, 0, true), 1);
	ck_assert_uint_eq(find(1, FRAME_HOST, 1, 0, 0, false), 0);
	call_tree_close(&tree);
	call_tree_close(&tree); /* twice is harmless */
}
END_TEST

START_TEST(room_is_made_by_a_reset_that_the_stream_tells)
{
	static struct sysprof_encoder encoder;
	struct memory_dump dump = {0};
	uint8_t buffer[64];
	const struct stack_node frame = {.kind = FRAME_HOST, .value = 9};

	sysprof_encoder_open(&encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, &dump);
	ck_assert(call_tree_open(&tree, 3));
	ck_assert(call_tree_make_room(&tree, &encoder, 3));
	ck_assert_uint_eq(sysprof_write_frame(&encoder, &tree, 0, &frame), 1);
	ck_assert_uint_eq(sysprof_write_frame(&encoder, &tree, 1, &frame), 2);
	ck_assert_uint_eq(sysprof_write_frame(&encoder, &tree, 0, &frame), 1);
	ck_assert(call_tree_make_room(&tree, &encoder, 1));
	ck_assert_uint_eq(tree.node_count, 2);
	ck_assert(call_tree_make_room(&tree, &encoder, 2));
	ck_assert_uint_eq(tree.node_count, 0);
	ck_assert(!call_tree_make_room(&tree, &encoder, 4));
	sysprof_encoder_flush(&encoder);

	/* Record 11, reserved address, 12 bytes: two nodes, one reset. */
	const uint8_t expected[] = {11,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            0xff,
	                            1,
	                            12,
	                            ITEM_NODE,
	                            3,
	                            0,
	                            FRAME_HOST,
	                            9,
	                            ITEM_NODE,
	                            3,
	                            1,
	                            FRAME_HOST,
	                            9,
	                            ITEM_RESET_NODES,
	                            0};
	ck_assert_uint_eq(dump.count, sizeof(expected));
	ck_assert_mem_eq(dump.bytes, expected, sizeof(expected));
	memory_dump_free(&dump);
	call_tree_close(&tree);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("call_tree");
	TCase *tests = tcase_create("call_tree");

	tcase_add_test(tests, every_property_makes_another_node);
	tcase_add_test(tests, a_full_tree_takes_no_more_but_still_finds);
	tcase_add_test(tests, limits_out_of_range_are_refused);
	tcase_add_test(tests, room_is_made_by_a_reset_that_the_stream_tells);
	suite_add_tcase(suite, tests);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
