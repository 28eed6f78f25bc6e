// SPDX-License-Identifier: MIT
/* Spelling of frames: the exact names, and what no name may ever hold. */
#include "stream/frame_name.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char name[FRAME_NAME_BYTES];

static void assert_lua(const char *chunk, uint64_t first_line,
                       const char *function, const char *expected)
{
	size_t bytes = frame_name_lua(name, chunk, strlen(chunk), first_line,
	                              function, strlen(function));

	ck_assert_str_eq(name, expected);
	ck_assert_uint_eq(bytes, strlen(expected));
}

static void assert_native(const char *symbol, const char *expected)
{
	size_t bytes = frame_name_native(name, symbol, strlen(symbol));
	char again[FRAME_NAME_BYTES];

	ck_assert_str_eq(name, expected);
	ck_assert_uint_eq(bytes, strlen(expected));
	frame_name_native(again, name, bytes);
	ck_assert_str_eq(again, expected);
}

START_TEST(lua_functions)
{
	assert_lua("@app/fib.lua", 12, "fib", "fib app/fib.lua:12");
	assert_lua("@app/fib.lua", 12, "", "function app/fib.lua:12");
	assert_lua("@app/fib.lua", 0, "", "main app/fib.lua:0");
	assert_lua("=stdin", 1, "", "function stdin:1");
	assert_lua("=(command line)", 0, "", "main [command line]:0");
	assert_lua("=[C]", 3, "", "function [C]:3");
	assert_lua("@", 3, "", "function [no name]:3");
	assert_lua("rad", UINT64_MAX, "", "rad builtin");
	assert_lua("rad", UINT32_MAX, "", "rad builtin");
	assert_lua("=foreach", UINT64_MAX, "", "foreach builtin");
	assert_lua("", UINT64_MAX, "", "builtin");
	assert_lua("@a b/c d.lua", 2, "t.x", "t.x a b/c d.lua:2");
}
END_TEST

START_TEST(lua_functions_of_source_text)
{
	assert_lua("return f(x)", 0, "", "main [string return f\\x28x\\x29]:0");
	assert_lua("local a\nreturn a", 0, "", "main [string local a ...]:0");
	assert_lua("local a\n", 0, "", "main [string local a]:0");
	assert_lua("\n\n  x = 1\ny = 2", 3, "",
	           "function [string x = 1 ...]:3");
	assert_lua("", 1, "", "function [string]:1");
	assert_lua("\n", 1, "", "function [string]:1");
}
END_TEST

START_TEST(lines)
{
	frame_name_lua_line(name, "@a.lua", 6, 12, "f", 1, 15);
	ck_assert_str_eq(name, "f a.lua:12 line 15");
	frame_name_lua_line(name, "@a.lua", 6, 12, "f", 1, 0);
	ck_assert_str_eq(name, "f a.lua:12");
}
END_TEST

START_TEST(traces)
{
	frame_name_trace(name, 17, "@file.lua", 9, 30);
	ck_assert_str_eq(name, "TRACE_17 file.lua:30");
	frame_name_trace(name, 17, "", 0, 0);
	ck_assert_str_eq(name, "TRACE_17");
}
END_TEST

START_TEST(native_functions)
{
	assert_native("lj_BC_FUNCC", "lj_BC_FUNCC");
	assert_native("_ZN3fooEv", "_ZN3fooEv");
	assert_native("std::at(int)", "std::at\\x28int\\x29");
	assert_native("a;b\n\"c'\t\x7f", "a\\x3bb\\x0a\\x22c\\x27\\x09\\x7f");
	assert_native("", "[no name]");
	assert_native("f", "[f]");
	assert_native("fg", "[fg]");
	assert_native(";", "\\x3b");
	assert_native(" pad ", "\\x20pad\\x20");
	assert_native("a->b>c-", "a-\\x3eb>c-");
	assert_native("luajit+0x12ab", "luajit 0x12ab");
	assert_native("luajit+0x", "luajit+0x");
	assert_native("a+0x12 b", "a+0x12 b");
	assert_native("f_[k]", "f_\\x5bk]");
	assert_native("f_[k]x", "f_[k]x");
}
END_TEST

START_TEST(only_good_utf8_stays)
{
	assert_native("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	assert_native("\xe2\x82\xac 5", "\xe2\x82\xac 5");
	assert_native("\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!");
	assert_native("abc\xff", "abc\\xff");
	assert_native("abc\xc3", "abc\\xc3");
	assert_native("\xc0\x80 overlong", "\\xc0\\x80 overlong");
	assert_native("\xe0\x80\x80", "\\xe0\\x80\\x80");
	assert_native("\xed\xa0\x80 surrogate", "\\xed\\xa0\\x80 surrogate");
	assert_native("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	assert_native("\xc2\x85 control", "\\xc2\\x85 control");
	assert_native("\xef\xbf\xbf no", "\\xef\\xbf\\xbf no");
}
END_TEST

START_TEST(long_names_are_shortened)
{
	char text[2000] = "@";
	char expected[FRAME_NAME_BYTES] = "function ...";

	memset(text + 1, 'd', 900);
	strcpy(text + 901, "/end.lua");
	memset(expected + 12, 'd', 200 - 3 - 8);
	strcpy(expected + 12 + 200 - 3 - 8, "/end.lua:7");
	assert_lua(text, 7, "", expected);

	memset(text, 's', 900);
	text[900] = '\0';
	memset(expected, 's', 197);
	strcpy(expected + 197, "...");
	assert_native(text, expected);

	memset(text, 's', 200); /* just fits */
	text[200] = '\0';
	assert_native(text, text);

	memset(text, '\n', 900); /* no escape is cut in two */
	frame_name_native(name, text, 900);
	ck_assert_uint_eq(strlen(name), 196 + 3);
	ck_assert_str_eq(name + 192, "\\x0a...");

	/* Nor is a character. */
	for (int i = 0; i < 300; i++)
		memcpy(text + 3 * i, "\xe2\x82\xac", 3);
	frame_name_native(name, text, 900);
	ck_assert_str_eq(name + 65 * 3, "...");
}
END_TEST

START_TEST(vm_parts)
{
	const uint64_t bytecode = VM_PART_BASE + VM_PART_BYTECODE;
	const uint64_t header = VM_PART_BASE + VM_PART_HEADER;

	frame_name_vm_part(name, bytecode);
	ck_assert_str_eq(name, "BC_ISLT");
	frame_name_vm_part(name, bytecode + 88);
	ck_assert_str_eq(name, "BC_JMP");
	frame_name_vm_part(name, bytecode + 89);
	ck_assert_str_eq(name, "BC_89");
	frame_name_vm_part(name, header);
	ck_assert_str_eq(name, "BC_FUNCF");
	frame_name_vm_part(name, header + 7);
	ck_assert_str_eq(name, "BC_FUNCCW");
	frame_name_vm_part(name, VM_PART_BASE + VM_PART_EXIT);
	ck_assert_str_eq(name, "lj_vm trace exit");
	ck_assert_uint_lt(frame_name_vm_part(name, UINT64_MAX),
	                  FRAME_NAME_BYTES);
}
END_TEST

START_TEST(markers_and_reasons)
{
	frame_marker_name(name, MARKER_TRUNCATED, 1800);
	ck_assert_str_eq(name, "[truncated: 1800 frames]");
	frame_marker_name(name, MARKER_TRUNCATED, 1);
	ck_assert_str_eq(name, "[truncated: 1 frame]");
	frame_marker_name(name, 99, 0);
	ck_assert_str_eq(name, "[marker 99]");
	for (int marker = 1; marker < MARKER_COUNT; marker++) {
		frame_marker_name(name, (uint64_t)marker, 0);
		ck_assert_ptr_null(strstr(name, "[marker"));
	}
	ck_assert_str_eq(lost_reason_name(LOST_RING_FULL), "ring full");
	ck_assert_str_eq(lost_reason_name(0), "unknown reason");
	ck_assert_str_eq(lost_reason_name(LOST_COUNT), "unknown reason");
	ck_assert_str_eq(sample_state_name(STATE_TRACE), "TRACE");
	ck_assert_str_eq(sample_state_name(STATE_COUNT), "unknown state");
}
END_TEST

static bool is_safe(const char *text)
{
	for (const char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f ||
		    strchr(";()\"'", *at) != NULL)
			return false;
	return strlen(text) >= 3 && strlen(text) < FRAME_NAME_BYTES &&
	       text[0] != ' ' && text[strlen(text) - 1] != ' ';
}

/* Any bytes make a safe name. */
START_TEST(random_bytes_make_safe_names)
{
	unsigned seed = 1;

	for (int round = 0; round < 100000; round++) {
		char bytes[300];
		size_t count = (size_t)rand_r(&seed) % sizeof(bytes);

		for (size_t i = 0; i < count; i++)
			bytes[i] = (char)rand_r(&seed);
		if (count > 0 && round % 3 > 0)
			bytes[0] = round % 3 == 1 ? '@' : '=';
		frame_name_native(name, bytes, count);
		ck_assert_msg(is_safe(name), "%s", name);
		frame_name_lua_line(name, bytes, count, 1, bytes, count, 2);
		ck_assert_msg(is_safe(name), "%s", name);
		frame_name_lua(name, bytes, count, UINT64_MAX, "", 0);
		ck_assert_msg(is_safe(name), "%s", name);
		frame_name_trace(name, UINT64_MAX, bytes, count, 1);
		ck_assert_msg(is_safe(name), "%s", name);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frame_name");
	TCase *tests = tcase_create("frame_name");

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, lua_functions);
	tcase_add_test(tests, lua_functions_of_source_text);
	tcase_add_test(tests, lines);
	tcase_add_test(tests, traces);
	tcase_add_test(tests, native_functions);
	tcase_add_test(tests, only_good_utf8_stays);
	tcase_add_test(tests, long_names_are_shortened);
	tcase_add_test(tests, vm_parts);
	tcase_add_test(tests, markers_and_reasons);
	tcase_add_test(tests, random_bytes_make_safe_names);
	suite_add_tcase(suite, tests);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
