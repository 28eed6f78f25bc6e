// SPDX-License-Identifier: MIT
/* Lua definitions: names that must be found, and the many that must not. */
#include "lua_definitions.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE NULL

struct expected {
	uint32_t line;
	const char *name;
};

static const struct lua_definition *
find_line(const struct lua_definitions *definitions, uint32_t line)
{
	for (size_t i = 0; i < definitions->count; i++)
		if (definitions->items[i].line == line)
			return &definitions->items[i];
	return NULL;
}

static size_t count_named(const struct lua_definitions *definitions)
{
	size_t count = 0;

	for (size_t i = 0; i < definitions->count; i++)
		count += definitions->items[i].kind == LUA_DEFINITION_NAMED;
	return count;
}

/* Checks every name of the text; expected ends with line 0. */
static void assert_definitions(const char *text, size_t bytes,
                               const struct expected *expected)
{
	struct lua_definitions definitions;
	size_t count = 0;

	ck_assert_int_eq(lua_definitions_read(&definitions, text, bytes), 0);
	for (; expected->line != 0; expected++, count++) {
		const struct lua_definition *item =
			find_line(&definitions, expected->line);
		const char *name = NULL;

		if (item)
			lua_definitions_find(&definitions, item->line,
			                     item->last_line, &name);
		ck_assert_msg(name && !strcmp(name, expected->name),
		              "%s\nline %u: %s instead of %s", text,
		              expected->line, name ? name : "(none)",
		              expected->name);
	}
	ck_assert_msg(count_named(&definitions) == count,
	              "%s\n%zu names instead of %zu, such as %s", text,
	              count_named(&definitions), count,
	              definitions.names_bytes ? definitions.names : "");
	lua_definitions_free(&definitions);
}

/* What the text says of a function in these lines. */
static void assert_kind(const char *text, uint32_t line, uint32_t last_line,
                        enum lua_definition_kind expected)
{
	struct lua_definitions definitions;
	enum lua_definition_kind kind;
	const char *name;

	ck_assert_int_eq(lua_definitions_read(&definitions, text, strlen(text)),
	                 0);
	kind = lua_definitions_find(&definitions, line, last_line, &name);
	ck_assert_msg(kind == expected, "%s\nline %u to %u: %d instead of %d",
	              text, line, last_line, kind, expected);
	ck_assert_int_eq(name != NULL, kind == LUA_DEFINITION_NAMED);
	lua_definitions_free(&definitions);
}

#define ASSERT_DEFINITIONS(text, ...)                                          \
	assert_definitions(text, strlen(text),                                 \
	                   (const struct expected[]){__VA_ARGS__, {0, NONE}})

/* The text defines one function, in line 1. */
static void assert_name(const char *text, const char *name)
{
	assert_definitions(text, strlen(text),
	                   (const struct expected[]){{1, name}, {0, NONE}});
}

static void assert_none(const char *text)
{
	assert_definitions(text, strlen(text),
	                   (const struct expected[]){{0, NONE}});
}

START_TEST(statements_are_named)
{
	assert_name("local function fib(n) end", "fib");
	assert_name("function fib(n) end", "fib");
	assert_name("function a.b.c(n) end", "a.b.c");
	assert_name("function a.b:c(n) end", "a.b:c");
	assert_name("function a . b : c (n) end", "a.b:c");
	assert_name("function a.b --[[why]] :c (n) end", "a.b:c");
	assert_name("local\tfunction f(\n a,\n b)\n end", "f");
	assert_name("do function f() end end", "f");
	assert_name("function caf\xc3\xa9() end", "caf\xc3\xa9");
	assert_name("local functional = 1; function f() end", "f");
	assert_name("return 1 and {}, 2 ; function f() end", "f");
}
END_TEST

START_TEST(assignments_are_named)
{
	assert_name("f = function() end", "f");
	assert_name("local f = function() end", "f");
	assert_name("local f=function(a,b)return a+b end", "f");
	assert_name("a.b.c = function() end", "a.b.c");
	assert_name("g() a.b = function() end", "a.b");
	assert_name("g 'x' f = function() end", "f");
	assert_name("if x then f = function() end end", "f");
	assert_name("repeat f = function() end until true", "f");
	assert_name("f = function() end, 1", "f");
}
END_TEST

START_TEST(fields_are_named)
{
	assert_name("t = {key = function() end}", "key");
	assert_name("t = {1, 2; key = function() end}", "key");
	assert_name("t = {[\"some key\"] = function() end}", "some key");
	assert_name("t = {x = 1, ['k'] = function() end}", "k");
	assert_name("f{g(1), {2}, key = function() end}", "key");
	ASSERT_DEFINITIONS("return {\n"
	                   "  on = function(self)\n"
	                   "    a, b = 1, 2\n"
	                   "    c = function() end\n"
	                   "  end,\n"
	                   "  off = function() end,\n"
	                   "}\n",
	                   {2, "on"}, {4, "c"}, {6, "off"});
}
END_TEST

START_TEST(functions_without_a_name_have_none)
{
	assert_none("return function() end");
	assert_none("call(function() end)");
	assert_none("call(1, function() end)");
	assert_none("f = (function() end)()");
	assert_none("f = g or function() end");
	assert_none("f = g(function() end)");
	assert_none("t = {function() end}");
	assert_none("t = {1, function() end}");
	assert_none("t = {[1] = function() end}");
	assert_none("t = {[k] = function() end}");
	assert_none("t = {['a' .. 'b'] = function() end}");
	assert_none("t = {['a\\98'] = function() end}");
	assert_none("t = {[''] = function() end}");
	assert_none("t = {['a\tb'] = function() end}");
	assert_none("t = {[ [[long]] ] = function() end}");
	assert_none("t['key'] = function() end");
	assert_none("t[1].f = function() end");
	assert_none("g().f = function() end");
	assert_none("(g).f = function() end");
	assert_none("x = a == function() end");
	assert_none("for f = function() end, 2 do end");
}
END_TEST

/* The function is the value of the first variable, not of the last one. */
START_TEST(several_variables_have_no_name)
{
	assert_none("a, b = function() end, 1");
	assert_none("local a, b = function() end, 1");
	assert_none("t.a, t.b = function() end, 1");
	assert_none("a,\nb = function() end, 1");
	assert_none("a, b = 1, function() end");
	ASSERT_DEFINITIONS("t = {f = function()\n a, b = function() end end}",
	                   {1, "f"});
}
END_TEST

START_TEST(two_functions_in_a_line_have_none)
{
	assert_none("function f() end function g() end");
	assert_none("f = function() return function() end end");
	assert_none("function f() end function g() end function h() end");
	assert_none("t = {a = function() end, b = function() end}");
	ASSERT_DEFINITIONS("function f()\n"
	                   "end function g() end\n"
	                   "function h() end\n",
	                   {1, "f"}, {2, "g"}, {3, "h"});
	assert_none("function f() call(function()\nend) end");
}
END_TEST

/* The VM counts these from the line of the parenthesis. */
START_TEST(definition_over_several_lines_has_none)
{
	assert_none("f =\nfunction() end");
	assert_none("f\n= function() end");
	assert_none("function\nf() end");
	assert_none("function f\n() end");
	assert_none("f = function\n() end");
	assert_none("function a.\nb() end");
	assert_none("f = function --[[\n]] () end");
	assert_none("f = function\n() g = function() end end");
	assert_none("t = {[\n'key'] = function() end}");
}
END_TEST

START_TEST(strings_and_comments_are_skipped)
{
	assert_none("-- function f() end");
	assert_none("--[[ function f() end ]]");
	assert_none("--[==[\nfunction f() end\n]] ]=]\n]==]");
	assert_none("s = 'function f() end'");
	assert_none("s = \"local function f() end\"");
	assert_none("s = [[\nfunction f() end\n]]");
	assert_none("s = [=[\nfunction f() end ]]\n]=]");
	assert_name("function f() end -- function g() end", "f");
	assert_name("function f() return 'function' end", "f");
	assert_name("local s = 'it\\'s function' function f() end", "f");
	assert_name("local s = '--[[' function f() end -- ]]", "f");
	assert_name("s = '\\\\' function f() end", "f");
	ASSERT_DEFINITIONS("s = 'a\\\nb'\nfunction f() end", {3, "f"});
	ASSERT_DEFINITIONS("s = 'a\\z \n\n b'\nfunction f() end", {4, "f"});
	ASSERT_DEFINITIONS("--[ no long comment\nfunction f() end", {2, "f"});
	ASSERT_DEFINITIONS("x = a[b[1]] --]]\nfunction f() end", {2, "f"});
}
END_TEST

START_TEST(numbers_and_operators_do_not_mislead)
{
	assert_name("local x = 0x1p-3 + 1e+5 .. 'a' function f() end", "f");
	assert_name("local x = 3LL f = function() end", "f");
	assert_name("x = a <= b f = function() end", "f");
	assert_name("x = ... f = function() end", "f");
	assert_name("goto done ::done:: f = function() end", "f");
	assert_name("local x = .5 f = function() end", "f");
}
END_TEST

START_TEST(lines_are_counted_as_the_vm_does)
{
	ASSERT_DEFINITIONS("\n\r\nfunction f() end\r\nfunction g() end",
	                   {3, "f"}, {4, "g"});
	ASSERT_DEFINITIONS("x = 1\rfunction f() end\n\rfunction g() end",
	                   {2, "f"}, {3, "g"});
	ASSERT_DEFINITIONS("#!/usr/bin/luajit\r\nfunction f() end", {2, "f"});
	ASSERT_DEFINITIONS("\xef\xbb\xbf#!/bin/x\nfunction f() end", {2, "f"});
	assert_none("# function g() end");
	ASSERT_DEFINITIONS("s = [[\r\n\r\n]]\r\nfunction f() end", {4, "f"});
}
END_TEST

START_TEST(a_function_ends_where_the_text_says)
{
	static const char text[] = "function f()\n"
				   "  if x then return function()\n"
				   "    while y do end\n"
				   "  end end\n"
				   "end local t = {g = function() end,\n"
				   "  h = function(a,\n"
				   "    b) repeat until [[\n"
				   "    ]] end}\n";

	assert_kind(text, 1, 5, LUA_DEFINITION_NAMED);
	assert_kind(text, 2, 4, LUA_DEFINITION_UNNAMED);
	assert_kind(text, 5, 5, LUA_DEFINITION_NAMED);
	assert_kind(text, 6, 8, LUA_DEFINITION_NAMED);
	for (uint32_t last = 0; last < 10; last++) {
		if (last != 5)
			assert_kind(text, 1, last, LUA_DEFINITION_MISSING);
		if (last != 4)
			assert_kind(text, 2, last, LUA_DEFINITION_MISSING);
		assert_kind(text, 3, last, LUA_DEFINITION_MISSING);
		assert_kind(text, 9, last, LUA_DEFINITION_MISSING);
	}
}
END_TEST

/* One that has no name is another matter than one that may have any. */
START_TEST(what_is_not_known_is_not_unnamed)
{
	assert_kind("call(function() end)", 1, 1, LUA_DEFINITION_UNNAMED);
	assert_kind("t = {function()\n end}", 1, 2, LUA_DEFINITION_UNNAMED);
	assert_kind("function f() end function g() end", 1, 1,
	            LUA_DEFINITION_UNKNOWN);
	assert_kind("f(function() end, function()\n end)", 1, 2,
	            LUA_DEFINITION_UNKNOWN);
	assert_kind("f =\nfunction() end", 2, 2, LUA_DEFINITION_UNNAMED);
	assert_kind("f = function\n() end", 1, 2, LUA_DEFINITION_UNKNOWN);
	assert_kind("f = function\n() end", 2, 2, LUA_DEFINITION_UNKNOWN);
	assert_kind("", 1, 1, LUA_DEFINITION_MISSING);
	assert_kind("function f() end end", 1, 1, LUA_DEFINITION_MISSING);
}
END_TEST

/* `x -> x` of LuaJIT since 2026. Elsewhere it is no Lua. */
START_TEST(short_functions_share_a_line)
{
	assert_kind("f = x -> x + 1", 1, 1, LUA_DEFINITION_UNKNOWN);
	assert_none("function f(a) return map(a, x -> x + 1) end");
	assert_none("function f(a) return map(a, |x, y| -> x + y) end");
	assert_none("function f(a) return map(a, || -> do return 1 end) end");
	assert_none("function f(a) return |x,\ny| -> x end");
	assert_kind("function f(a) return |x,\ny| -> x end", 1, 2,
	            LUA_DEFINITION_UNKNOWN);
	ASSERT_DEFINITIONS("function f(a)\n"
	                   "  return map(a, |x,\n y| -> x + y)\n"
	                   "end\n"
	                   "function g() end",
	                   {1, "f"}, {5, "g"});
	assert_name("x = a - b function f() end", "f");
	assert_name("x = a - -b > c function f() end", "f");
}
END_TEST

/* What does not scan is not the text of a running function. */
START_TEST(text_that_is_not_lua_has_none)
{
	assert_none("");
	assert_none("function f() end end");
	assert_none("function f() end (");
	assert_none("function f()");
	assert_none("function f() end s = 'open\n'");
	assert_none("function f() end s = [[open");
	assert_none("function f() end --[[open");
	assert_none("function f() end s = 'open\\");
	assert_none("function f() end x = {)");
	assert_none("function");
	assert_none("f = function");
	assert_none("local function f");
	/* Bytecode. */
	assert_definitions("\x1bLJ\x02\0function f() end", 21,
	                   (const struct expected[]){{0, NONE}});
}
END_TEST

START_TEST(nesting_is_bounded)
{
	static char text[1 << 16];
	size_t length = 0;

	length += (size_t)sprintf(text, "function f() end\nx = ");
	for (int i = 0; i < 20000; i++)
		text[length++] = '(';
	assert_none(text);
	memset(text + length, ')', 20000);
	assert_none(text);
}
END_TEST

START_TEST(long_lines_and_names_are_bounded)
{
	static char text[1 << 20], name[1 << 18];
	size_t length = 0;

	while (length < 500000)
		length += (size_t)sprintf(text + length, "x = 'function' ");
	sprintf(text + length, "function f() end");
	assert_name(text, "f");

	memset(name, 'n', sizeof(name) - 1);
	sprintf(text, "function %s() end", name);
	assert_name(text, name);

	for (int parts = 2; parts <= 200; parts++) {
		length = 0;
		for (int i = 0; i < parts; i++)
			length += (size_t)sprintf(name + length, "%sp",
			                          i ? "." : "");
		sprintf(text, "%s = function() end", name);
		if (parts <= 30)
			assert_name(text, name);
		else if (parts > 40)
			assert_none(text);
		sprintf(text, "function %s() end", name);
		if (parts <= 30)
			assert_name(text, name);
		else if (parts > 40)
			assert_none(text);
	}
}
END_TEST

START_TEST(many_definitions_are_found)
{
	struct lua_definitions definitions;
	char *text = malloc(1 << 21);
	size_t length = 0;

	for (int i = 0; i < 50000; i++)
		length += (size_t)sprintf(text + length,
		                          "function f%d() end\n\n", i);
	ck_assert_int_eq(lua_definitions_read(&definitions, text, length), 0);
	ck_assert_uint_eq(definitions.count, 50000);
	for (uint32_t i = 0; i < 50000; i++) {
		const char *name;

		sprintf(text, "f%u", i);
		ck_assert_int_eq(lua_definitions_find(&definitions, 2 * i + 1,
		                                      2 * i + 1, &name),
		                 LUA_DEFINITION_NAMED);
		ck_assert_str_eq(name, text);
		ck_assert_int_eq(lua_definitions_find(&definitions, 2 * i + 2,
		                                      2 * i + 2, &name),
		                 LUA_DEFINITION_MISSING);
	}
	lua_definitions_free(&definitions);
	free(text);
}
END_TEST

/* Every cut of a text, and random bytes: no crash, no endless loop. */
START_TEST(broken_text_does_no_harm)
{
	static const char text[] =
		"#!x\nlocal function a() end t = {['k'] = function() end}\n"
		"--[==[ c ]==] s = [=[ x ]=] .. 'y\\z \n' .. 0x1p-3 ..= ::l::";
	static const char alphabet[] = "function()end =.[]{}'\"\\-\n\r#:,;ax1";
	char random[200];
	struct lua_definitions definitions;

	for (size_t i = 0; i < sizeof(text); i++) {
		char *cut = malloc(i + 1);

		memcpy(cut, text, i);
		lua_definitions_read(&definitions, cut, i);
		lua_definitions_free(&definitions);
		free(cut);
	}
	srand(1);
	for (int i = 0; i < 50000; i++) {
		for (size_t j = 0; j < sizeof(random); j++)
			random[j] = alphabet[(size_t)rand() %
			                     (sizeof(alphabet) - 1)];
		lua_definitions_read(&definitions, random, sizeof(random));
		lua_definitions_free(&definitions);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lua_definitions");
	TCase *tests = tcase_create("lua_definitions");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, statements_are_named);
	tcase_add_test(tests, assignments_are_named);
	tcase_add_test(tests, fields_are_named);
	tcase_add_test(tests, functions_without_a_name_have_none);
	tcase_add_test(tests, several_variables_have_no_name);
	tcase_add_test(tests, two_functions_in_a_line_have_none);
	tcase_add_test(tests, definition_over_several_lines_has_none);
	tcase_add_test(tests, strings_and_comments_are_skipped);
	tcase_add_test(tests, numbers_and_operators_do_not_mislead);
	tcase_add_test(tests, lines_are_counted_as_the_vm_does);
	tcase_add_test(tests, a_function_ends_where_the_text_says);
	tcase_add_test(tests, what_is_not_known_is_not_unnamed);
	tcase_add_test(tests, short_functions_share_a_line);
	tcase_add_test(tests, text_that_is_not_lua_has_none);
	tcase_add_test(tests, nesting_is_bounded);
	tcase_add_test(tests, long_lines_and_names_are_bounded);
	tcase_add_test(tests, many_definitions_are_found);
	tcase_add_test(tests, broken_text_does_no_harm);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
