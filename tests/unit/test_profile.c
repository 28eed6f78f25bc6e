// SPDX-License-Identifier: MIT
/*
 * From records to stacks: names in stream order, the joining of stacks without
 * the extension, and the order of the view that outputs walk.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump_fixture.h"
#include "output/output.h"
#include "profile/join.h"
#include "profile/load.h"
#include "profile/memory.h"
#include "profile/select.h"
#include "profile/stack_view.h"
#include "profile/symbols.h"

static struct sysprof_encoder encoder;
static struct memory_dump dump;
static uint8_t buffer[64];

static void setup(void)
{
	dump = (struct memory_dump){0};
	sysprof_encoder_open(&encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, &dump);
	sysprof_write_prologue(&encoder);
}

static void teardown(void)
{
	memory_dump_free(&dump);
}

/* Loads the dump, selects, and compares one of the outputs. */
static void assert_selected(const struct load_options *options,
                            const struct selection *selection,
                            const char *format, const char *expected)
{
	struct profile profile;
	struct profile selected;
	struct load_result result;
	char *text = NULL;
	size_t bytes;

	FILE *file = fmemopen(dump.bytes, dump.count, "rb");
	profile_load(&profile, file, "test", options, &result);
	fclose(file);
	ck_assert_msg(result.complete, "%s", result.error);

	profile_select(&selected, &profile, selection);
	file = open_memstream(&text, &bytes);
	output_find(format)->write(file, &selected, "test");
	fclose(file);
	ck_assert_str_eq(text, expected);
	free(text);
	profile_close(&selected);
	profile_close(&profile);
}

static void assert_output(const struct load_options *options,
                          const char *format, const char *expected)
{
	assert_selected(options, &(struct selection){0}, format, expected);
}

static void assert_folded(const char *expected)
{
	sysprof_write_end(&encoder);
	assert_output(&(struct load_options){0}, "folded", expected);
}

/* ---- whole dumps ------------------------------------------------------- */

START_TEST(the_small_dump_in_every_view)
{
	small_dump_write(&dump, 100);
	assert_output(&(struct load_options){0}, "folded", small_dump_folded);
	assert_selected(&(struct load_options){0},
	                &(struct selection){.lines = LINES_ALL}, "folded",
	                small_dump_folded_lines);
	assert_output(
		&(struct load_options){.host_addresses = true}, "folded",
		"[no stack] 1\n"
		"0x400008;0x401008;main app.lua:0;0x402010 1\n"
		"0x400008;0x401008;main app.lua:0;0x404000;[truncated] 1\n"
		"0x400008;0x401008;main app.lua:0;fib app.lua:3 2\n"
		"0x400008;0x401008;main app.lua:0;fib app.lua:3;string.format "
		"1\n"
		"0x400008;0x401008;main app.lua:0;rad builtin 1\n");
	/* The old parser ignores the extension, and takes fast function 90
	 * for the one of its own VM. */
	assert_output(
		&(struct load_options){.compat = true}, "compat",
		";\t2\n"
		"main:0x400000;lua_pcall:0x401000;\t2\n"
		"main:0x400000;lua_pcall:0x401000;@app.lua:0;\t1\n"
		"main:0x400000;lua_pcall:0x401000;@app.lua:0;@app.lua:3;\t1\n"
		"main:0x400000;lua_pcall:0x401000;@app.lua:0;@app.lua:3;"
		"table.maxn;\t1\n");
}
END_TEST

START_TEST(top_counts_recursion_once)
{
	const struct guest_entry guest[] = {
		{.type = GUEST_LUA, .value = 16, .first_line = 1},
		{.type = GUEST_LUA, .value = 16, .first_line = 1},
		{.type = GUEST_LUA, .value = 32, .first_line = 0},
	};

	sysprof_write_proto(&encoder, 16, "@r.lua", 6, 1);
	sysprof_write_proto(&encoder, 32, "@r.lua", 6, 0);
	for (int i = 0; i < 3; i++)
		sysprof_write_sample(&encoder, STATE_LFUNC, guest, 3, NULL, 0);
	sysprof_write_sample(&encoder, STATE_LFUNC, guest + 2, 1, NULL, 0);
	sysprof_write_end(&encoder);
	assert_output(
		&(struct load_options){0}, "top",
		"      self   self%      total  total%  function\n"
		"         3   75.0%          3   75.0%  function r.lua:1\n"
		"         1   25.0%          4  100.0%  main r.lua:0\n"
		"\n"
		"   samples          VM state\n"
		"         4  100.0%  LFUNC\n"
		"         4  100.0%  in all\n");
}
END_TEST

START_TEST(names_are_those_at_the_time_of_the_sample)
{
	const struct guest_entry guest[] = {
		{.type = GUEST_LUA, .value = 16, .first_line = 3}};
	const uint64_t host[] = {0x1008};

	sysprof_write_sample(&encoder, STATE_LFUNC, guest, 1, host, 1);
	sysprof_write_proto(&encoder, 16, "@first.lua", 10, 3);
	sysprof_write_c_symbol(&encoder, 0x1000, "first");
	sysprof_write_sample(&encoder, STATE_LFUNC, guest, 1, host, 1);
	sysprof_write_proto(&encoder, 16, "@second.lua", 11, 3);
	sysprof_write_c_symbol(&encoder, 0x1000, "second");
	sysprof_write_sample(&encoder, STATE_LFUNC, guest, 1, host, 1);
	sysprof_write_c_symbol(&encoder, 0x1008, "third");
	sysprof_write_sample(&encoder, STATE_LFUNC, guest, 1, host, 1);
	assert_folded("0x1008;function 0x10:3 1\n"
	              "first;function first.lua:3 1\n"
	              "second;function second.lua:3 1\n"
	              "third;function second.lua:3 1\n");
}
END_TEST

START_TEST(trace_samples_without_extension_show_what_there_is)
{
	sysprof_write_proto(&encoder, 16, "@t.lua", 6, 3);
	sysprof_write_trace(&encoder, 5, 16, 8);
	sysprof_write_trace_sample(&encoder, 5, 16, 3);
	sysprof_write_trace_sample(&encoder, 6, 16, 3);
	sysprof_write_trace_sample(&encoder, 0, 16, 3);
	assert_folded("function t.lua:3 1\n"
	              "function t.lua:3;TRACE_5 t.lua:8 1\n"
	              "function t.lua:3;TRACE_6 1\n");
}
END_TEST

/* Interpreted and compiled are two boxes in a flame graph, but one line. */
START_TEST(equal_names_are_one_folded_line)
{
	const struct stack_node frames[2] = {
		{.kind = FRAME_HOST, .value = 0x1000},
		{.kind = FRAME_C, .value = 0x1000},
	};

	sysprof_write_c_symbol(&encoder, 0x1000, "same");
	for (uint32_t i = 0; i < 2; i++) {
		sysprof_write_node(&encoder, 0, &frames[i]);
		sysprof_write_sample_facts(
			&encoder, &(struct sample_facts){.leaf_node = i + 1});
		sysprof_write_sample(&encoder, STATE_GC, NULL, 0, NULL, 0);
	}
	assert_folded("same 2\n");
}
END_TEST

/* ---- joining ----------------------------------------------------------- */

/* Frames are numbered 1, 2, …; both lists are written root first. */
struct sketch {
	struct join_guest
		guest[8]; /* innermost first, as join_stacks() wants */
	size_t guest_count;
	struct join_host host[8];
	size_t host_count;
};

static void add_guest(struct sketch *sketch, uint32_t frame, uint64_t c)
{
	memmove(&sketch->guest[1], &sketch->guest[0],
	        sketch->guest_count * sizeof(sketch->guest[0]));
	sketch->guest[0] = (struct join_guest){frame, c != 0, c};
	sketch->guest_count++;
}

static void add_host(struct sketch *sketch, uint32_t frame, uint64_t address,
                     bool enters_vm)
{
	memmove(&sketch->host[1], &sketch->host[0],
	        sketch->host_count * sizeof(sketch->host[0]));
	sketch->host[0] =
		(struct join_host){frame, address != 0, enters_vm, address};
	sketch->host_count++;
}

static void assert_joined(const struct sketch *sketch, const uint32_t *expected,
                          size_t count, size_t unplaced)
{
	struct join join = {0};

	join_stacks(&join, sketch->guest, sketch->guest_count, sketch->host,
	            sketch->host_count);
	ck_assert_uint_eq(join.count, count);
	ck_assert_mem_eq(join.frames, expected, count * sizeof(*expected));
	ck_assert_uint_eq(join.unplaced_count, unplaced);
	join_free(&join);
}

#define ASSERT_JOINED(sketch, unplaced, ...)                                   \
	assert_joined(sketch, (const uint32_t[]){__VA_ARGS__},                 \
	              sizeof((const uint32_t[]){__VA_ARGS__}) /                \
	                      sizeof(uint32_t),                                \
	              unplaced)

/* main 1, pmain 2 (C, called from Lua), lua_pcall 3; Lua 10, C 11, Lua 12. */
START_TEST(stacks_meet_at_c_functions)
{
	struct sketch sketch = {0};

	add_guest(&sketch, 20, 0x200);
	add_guest(&sketch, 10, 0);
	add_guest(&sketch, 21, 0x400);
	add_guest(&sketch, 12, 0);
	add_host(&sketch, 1, 0x100, false);
	add_host(&sketch, 2, 0x200, false);
	add_host(&sketch, 3, 0x300, true);
	add_host(&sketch, 4, 0x400, false);
	add_host(&sketch, 5, 0x300, true);
	add_host(&sketch, 6, 0x600, false);
	ASSERT_JOINED(&sketch, 0, 1, 2, 3, 10, 4, 5, 12, 6);
}
END_TEST

START_TEST(lua_frames_are_never_dropped)
{
	struct sketch sketch = {0};

	add_guest(&sketch, 10, 0);
	add_guest(&sketch, 20, 0x900); /* its native frame is missing */
	add_guest(&sketch, 11, 0);
	ASSERT_JOINED(&sketch, 1, 10, 20, 11);
	add_host(&sketch, 1, 0x100, false);
	ASSERT_JOINED(&sketch, 1, 1, 10, 20, 11);
	add_host(&sketch, 2, 0, true);
	add_host(&sketch, 3, 0, false);
	ASSERT_JOINED(&sketch, 1, 1, 2, 10, 20, 11, 3);
}
END_TEST

/* Recursion through one C function whose innermost native frame is missing. */
START_TEST(missing_innermost_frames_leave_the_outer_ones_in_place)
{
	struct sketch sketch = {0};

	add_guest(&sketch, 20, 0x200);
	add_guest(&sketch, 10, 0);
	add_guest(&sketch, 21, 0x200);
	add_guest(&sketch, 11, 0);
	add_host(&sketch, 1, 0x100, false);
	add_host(&sketch, 2, 0x200, false);
	add_host(&sketch, 3, 0x300, true);
	ASSERT_JOINED(&sketch, 1, 1, 2, 3, 10, 21, 11);
}
END_TEST

/* The Lua stack is that of the inner coroutine alone. */
START_TEST(a_coroutine_is_placed_behind_its_resumer)
{
	struct sketch sketch = {0};

	add_guest(&sketch, 10, 0);
	add_guest(&sketch, 20, 0x200);
	add_host(&sketch, 1, 0x300, true);
	add_host(&sketch, 2, 0x200, false);
	add_host(&sketch, 3, 0x300, true);
	add_host(&sketch, 4, 0x200, false);
	ASSERT_JOINED(&sketch, 0, 1, 2, 3, 10, 4);
}
END_TEST

START_TEST(only_functions_that_run_lua_enter_the_vm)
{
	ck_assert(join_name_enters_vm("lua_pcall"));
	ck_assert(join_name_enters_vm("lj_vm_call"));
	ck_assert(!join_name_enters_vm("lj_vm_callhook"));
	ck_assert(!join_name_enters_vm("luaV_call"));
	ck_assert(!join_name_enters_vm(""));
}
END_TEST

/* ---- labels ------------------------------------------------------------ */

static const char *label_at(const struct profile *profile, size_t moment)
{
	return profile->tags[profile->moments[moment].tag].label;
}

START_TEST(samples_have_the_label_of_their_time)
{
	const struct load_options labels = {.labels = true, .moments = true};
	struct profile profile;
	struct load_result result;

	labelled_dump_write(&dump);
	FILE *file = fmemopen(dump.bytes, dump.count, "rb");
	profile_load(&profile, file, "test", &labels, &result);
	fclose(file);
	ck_assert_msg(result.complete, "%s", result.error);
	ck_assert_uint_eq(profile.moment_count, 7);
	ck_assert_ptr_null(label_at(&profile, 0));
	ck_assert_str_eq(label_at(&profile, 1), "/search");
	ck_assert_str_eq(label_at(&profile, 2), "a;b \"c\"");
	ck_assert_str_eq(label_at(&profile, 3), "/search");
	ck_assert_str_eq(label_at(&profile, 4), "/item");
	ck_assert_ptr_null(label_at(&profile, 5));
	ck_assert_str_eq(label_at(&profile, 6), "a;b \"c\"");
	profile_close(&profile);
}
END_TEST

START_TEST(labels_part_and_choose_samples)
{
	const struct load_options labels = {.labels = true};
	struct selection selection = {.groups = {GROUP_LABEL},
	                              .group_count = 1};
	regex_t regex;

	labelled_dump_write(&dump);
	assert_selected(&labels, &selection, "folded", labelled_dump_folded);
	assert_selected(&(struct load_options){0}, &selection, "folded",
	                "[no label];main app.lua:0 7\n");
	ck_assert_int_eq(regcomp(&regex, "^/|^$", REG_EXTENDED), 0);
	selection.label = &regex;
	assert_selected(&labels, &selection, "folded",
	                "[label /item];main app.lua:0 1\n"
	                "[label /search];main app.lua:0 2\n"
	                "[no label];main app.lua:0 2\n");
	regfree(&regex);
}
END_TEST

/* ---- symbols ----------------------------------------------------------- */

START_TEST(c_symbols_are_found_at_or_below)
{
	struct symbols symbols = {0};
	const uint64_t addresses[] = {0x300, 0x100, UINT64_MAX - 1, 0x200};

	ck_assert_ptr_null(symbols_find_c(&symbols, 5));
	for (size_t i = 0; i < 4; i++)
		symbols_add_c(&symbols, addresses[i], "old", 3);
	symbols_add_c(&symbols, 0x200, "new", 3);
	ck_assert_ptr_null(symbols_find_c(&symbols, 0xff));
	ck_assert_uint_eq(symbols_find_c(&symbols, 0x100)->address, 0x100);
	ck_assert_uint_eq(symbols_find_c(&symbols, 0x1ff)->address, 0x100);
	ck_assert_str_eq(symbols_find_c(&symbols, 0x2ff)->name, "new");
	ck_assert_uint_eq(symbols_find_c(&symbols, UINT64_MAX)->address,
	                  UINT64_MAX - 1);
	symbols_add_c(&symbols, 0x180, "between", 7); /* into sorted ones */
	symbols_add_c(&symbols, 0x300, "again", 5);
	ck_assert_str_eq(symbols_find_c(&symbols, 0x1ff)->name, "between");
	ck_assert_str_eq(symbols_find_c(&symbols, 0x300)->name, "again");
	ck_assert_uint_eq(symbols.c_count, 5);
	symbols_free(&symbols);
}
END_TEST

/* ---- the view ---------------------------------------------------------- */

START_TEST(the_view_is_in_order_and_adds_up)
{
	struct profile profile;
	struct stack_view view;

	profile_open(&profile);
	uint32_t b = profile_frame(&profile, FRAME_LUA, 0, "b", 1);
	uint32_t a = profile_frame(&profile, FRAME_LUA, 0, "a", 1);
	ck_assert_uint_eq(profile_frame(&profile, FRAME_LUA, 0, "b", 1), b);
	ck_assert_uint_ne(profile_frame(&profile, FRAME_C, 0, "b", 1), b);
	uint32_t node_b = profile_node(&profile, PROFILE_ROOT, b);
	uint32_t node_ba = profile_node(&profile, node_b, a);
	uint32_t node_a = profile_node(&profile, PROFILE_ROOT, a);
	ck_assert_uint_eq(profile_node(&profile, node_b, a), node_ba);
	profile_count(&profile, node_ba, STATE_GC);
	profile_count(&profile, node_ba, STATE_LFUNC);
	profile_count(&profile, node_b, STATE_LFUNC);
	profile_count(&profile, node_a, STATE_LFUNC);

	stack_view_open(&view, &profile, VIEW_BY_NAME);
	ck_assert_uint_eq(view.count, 4);
	ck_assert_uint_eq(view.depth, 2);
	ck_assert_uint_eq(view.entries[0].total, 4);
	ck_assert_uint_eq(view.entries[0].end, 4);
	ck_assert_str_eq(view.entries[1].frame->name, "a");
	ck_assert_str_eq(view.entries[2].frame->name, "b");
	ck_assert_uint_eq(view.entries[2].self, 1);
	ck_assert_uint_eq(view.entries[2].total, 3);
	ck_assert_uint_eq(view.entries[2].by_state[STATE_GC], 1);
	ck_assert_uint_eq(view.entries[2].end, 4);
	ck_assert_uint_eq(view.entries[3].parent, 2);
	ck_assert_uint_eq(view.entries[3].depth, 2);
	stack_view_close(&view);
	profile_close(&profile);
}
END_TEST

/* A stack of a million frames needs no recursion. */
START_TEST(depth_has_no_limit)
{
	struct profile profile;
	struct stack_view view;
	uint32_t node = PROFILE_ROOT;

	profile_open(&profile);
	uint32_t frame = profile_frame(&profile, FRAME_LUA, 0, "f", 1);
	for (int i = 0; i < 1000000; i++)
		node = profile_node(&profile, node, frame);
	profile_count(&profile, node, STATE_LFUNC);
	stack_view_open(&view, &profile, VIEW_BY_FRAME);
	ck_assert_uint_eq(view.depth, 1000000);
	ck_assert_uint_eq(view.entries[0].total, 1);
	ck_assert_uint_eq(view.entries[1000000].self, 1);
	stack_view_close(&view);
	profile_close(&profile);
}
END_TEST

/* ---- pages ------------------------------------------------------------- */

static char *hostile_output(const char *format)
{
	struct profile profile;
	struct load_result result;
	char *text = NULL;
	size_t bytes;

	hostile_dump_write(&dump);
	FILE *file = fmemopen(dump.bytes, dump.count, "rb");
	profile_load(&profile, file, "test", &(struct load_options){0},
	             &result);
	fclose(file);
	ck_assert_msg(result.complete, "%s", result.error);
	file = open_memstream(&text, &bytes);
	output_find(format)->write(file, &profile, "</title><b>\"x\".bin");
	fclose(file);
	profile_close(&profile);
	return text;
}

static size_t occurrences(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)) != NULL; text++)
		count++;
	return count;
}

START_TEST(hostile_names_stay_in_the_html_data)
{
	char *text = hostile_output("html");
	char *start = strstr(text, "id=\"flame-data\">");

	ck_assert_ptr_nonnull(start);
	ck_assert_uint_eq(occurrences(text, "<script"), 2);
	ck_assert_uint_eq(occurrences(text, "</script"), 2);
	ck_assert_uint_eq(occurrences(text, "</title"), 1);
	ck_assert_ptr_null(strstr(text, "alert(1)"));
	/* Nothing from elsewhere: the one address is that of a namespace. */
	ck_assert_uint_eq(occurrences(text, "://"), 1);
	ck_assert_uint_eq(occurrences(text, "http://www.w3.org/1999/xhtml\""),
	                  1);

	/* Up to its end tag the data has nothing of HTML. */
	start += strlen("id=\"flame-data\">");
	*strstr(start, "</script>") = '\0';
	ck_assert_ptr_null(strpbrk(start, "<>&"));
	ck_assert_ptr_nonnull(strstr(
		start, "\\u003c/script\\u003e\\u003cscript\\u003ealert"));
	ck_assert_ptr_nonnull(
		strstr(start, "\"a\\u005cx3bb\\u005cx0a\\u005cx09c "));
	free(text);
}
END_TEST

START_TEST(hostile_names_are_text_in_the_svg)
{
	char *text = hostile_output("svg");

	ck_assert_uint_eq(occurrences(text, "<title>"),
	                  occurrences(text, "</title>"));
	ck_assert_uint_eq(occurrences(text, "<title>"), 6);
	ck_assert_uint_eq(occurrences(text, "<script"), 2);
	ck_assert_uint_eq(occurrences(text, "</script"), 2);
	ck_assert_uint_eq(occurrences(text, "]]>"), 1); /* the script's end */
	ck_assert_ptr_null(strstr(text, "<b>"));
	ck_assert_ptr_nonnull(strstr(text, "&lt;/script&gt;"));
	ck_assert_ptr_nonnull(strstr(text, "&amp;amp\\x3b"));
	ck_assert_ptr_null(strchr(text, '\xff'));
	free(text);
}
END_TEST

START_TEST(hostile_names_do_not_break_folded_lines)
{
	char *text = hostile_output("folded");

	ck_assert_uint_eq(occurrences(text, "\n"), 1);
	ck_assert_uint_eq(occurrences(text, ";"), 4);
	ck_assert_ptr_nonnull(
		strstr(text, "std::map<a, b>::at\\x28int\\x29\\x0a"));
	ck_assert_ptr_nonnull(strstr(text, "\\x22x\\x22 99 1\n"));
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile");
	TCase *dumps = tcase_create("dumps");
	TCase *parts = tcase_create("parts");
	TCase *pages = tcase_create("pages");

	tcase_add_checked_fixture(dumps, setup, teardown);
	tcase_add_test(dumps, the_small_dump_in_every_view);
	tcase_add_test(dumps, top_counts_recursion_once);
	tcase_add_test(dumps, names_are_those_at_the_time_of_the_sample);
	tcase_add_test(dumps,
	               trace_samples_without_extension_show_what_there_is);
	tcase_add_test(dumps, equal_names_are_one_folded_line);
	tcase_add_test(dumps, samples_have_the_label_of_their_time);
	tcase_add_test(dumps, labels_part_and_choose_samples);
	suite_add_tcase(suite, dumps);

	tcase_set_timeout(parts, 60);
	tcase_add_test(parts, stacks_meet_at_c_functions);
	tcase_add_test(parts, lua_frames_are_never_dropped);
	tcase_add_test(parts,
	               missing_innermost_frames_leave_the_outer_ones_in_place);
	tcase_add_test(parts, a_coroutine_is_placed_behind_its_resumer);
	tcase_add_test(parts, only_functions_that_run_lua_enter_the_vm);
	tcase_add_test(parts, c_symbols_are_found_at_or_below);
	tcase_add_test(parts, the_view_is_in_order_and_adds_up);
	tcase_add_test(parts, depth_has_no_limit);
	suite_add_tcase(suite, parts);

	tcase_add_checked_fixture(pages, setup, teardown);
	tcase_add_test(pages, hostile_names_stay_in_the_html_data);
	tcase_add_test(pages, hostile_names_are_text_in_the_svg);
	tcase_add_test(pages, hostile_names_do_not_break_folded_lines);
	suite_add_tcase(suite, pages);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
