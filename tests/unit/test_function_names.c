// SPDX-License-Identifier: MIT
/*
 * Function names: which files are believed. A file must be older than the
 * process, so the files are made before each test is forked.
 */
#include "function_names.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MANY_FILES  600
#define OTHER_FILES 3

static char directory[64];
static struct function_names *names;

static void file_path(char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", directory, name);
}

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	file_path(path, name);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

/* More than a file may have, all of it Lua. */
static void write_huge_file(void)
{
	char path[PATH_MAX];
	FILE *file;

	file_path(path, "huge.lua");
	file = fopen(path, "w");
	if (!file)
		abort();
	fputs("function huge() end\n", file);
	for (int i = 0; i < 150000; i++)
		fputs("-- a comment that makes the file longer\n", file);
	if (fclose(file) != 0)
		abort();
}

static void make_files(void)
{
	snprintf(directory, sizeof(directory),
	         "/tmp/test-function-names-XXXXXX");
	if (!mkdtemp(directory))
		abort();
	write_file("old.lua", "local x\n"
	                      "local function fib(n) end\n"
	                      "function a.b:c() end\n"
	                      "call(function() end)\n"
	                      "call(function() end, function() end)\n");
	for (int i = 0; i < OTHER_FILES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "other%d.lua", i);
		write_file(name, "local x\n"
		                 "local function other() end\n"
		                 "function second()\n"
		                 "end\n");
	}
	write_file("changed.lua", "function before() end\n");
	write_file("touched.lua", "function before() end\n");
	write_file("empty.lua", "");
	write_huge_file();
	for (int i = 0; i < MANY_FILES; i++) {
		char name[32], text[64];

		snprintf(name, sizeof(name), "%d.lua", i);
		snprintf(text, sizeof(text), "function f%d() end\n", i);
		write_file(name, text);
	}
}

static void remove_files(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	if (system(command) != 0)
		abort();
}

static void setup(void)
{
	names = function_names_open();
	ck_assert_ptr_nonnull(names);
}

static void teardown(void)
{
	function_names_close(names);
}

static size_t find(const char *chunk, size_t chunk_bytes, uint32_t line,
                   uint32_t last_line, const char *call_name, char *name,
                   size_t capacity)
{
	const struct function_facts function = {
		.chunk = chunk,
		.chunk_bytes = chunk_bytes,
		.first_line = line,
		.last_line = last_line,
		.call_name = call_name,
		.call_name_bytes = strlen(call_name),
	};

	return function_names_find(names, &function, name, capacity);
}

/* Of a function in one line, which nobody has called. */
static void assert_chunk(const char *chunk, size_t chunk_bytes, uint32_t line,
                         const char *expected)
{
	char name[256] = "dirt";
	size_t length =
		find(chunk, chunk_bytes, line, line, "", name, sizeof(name));

	ck_assert_str_eq(name, expected);
	ck_assert_uint_eq(length, strlen(expected));
}

static void assert_called(const char *file, uint32_t line, uint32_t last_line,
                          const char *call_name, const char *expected)
{
	char chunk[PATH_MAX + 1] = "@", name[256] = "dirt";
	size_t length;

	file_path(chunk + 1, file);
	length = find(chunk, strlen(chunk), line, last_line, call_name, name,
	              sizeof(name));
	ck_assert_str_eq(name, expected);
	ck_assert_uint_eq(length, strlen(expected));
}

static void assert_file(const char *name, uint32_t line, const char *expected)
{
	char chunk[PATH_MAX + 1] = "@";

	file_path(chunk + 1, name);
	assert_chunk(chunk, strlen(chunk), line, expected);
}

START_TEST(old_file_is_believed)
{
	for (int i = 0; i < 3; i++) {
		assert_file("old.lua", 2, "fib");
		assert_file("old.lua", 3, "a.b:c");
		assert_file("old.lua", 0, "");
	}
}
END_TEST

/* A program runs bytecode, of a text that has been edited since. */
START_TEST(another_text_is_not_believed_again)
{
	assert_called("other0.lua", 2, 2, "", "other");
	assert_called("other0.lua", 3, 4, "", "second");
	/* No function begins here. */
	assert_called("other0.lua", 1, 1, "called", "called");
	assert_called("other0.lua", 2, 2, "", "");
	assert_called("other0.lua", 2, 2, "called", "called");
	/* None that begins here ends there. */
	assert_called("other1.lua", 3, 3, "", "");
	assert_called("other1.lua", 2, 2, "", "");
	assert_called("other2.lua", UINT32_MAX, 0, "", "");
	assert_called("other2.lua", 2, 2, "", "");
}
END_TEST

/* In this one all functions have new names. */
START_TEST(most_functions_are_called_by_their_names)
{
	assert_called("other0.lua", 2, 2, "another", "another");
	assert_called("other0.lua", 3, 4, "", "");
	assert_called("other0.lua", 3, 4, "second", "second");
	assert_called("other0.lua", 3, 4, "second", "second");
	assert_called("other0.lua", 2, 2, "", "other");
	/* An alias, in a file that has proved right. */
	assert_called("old.lua", 2, 2, "fib", "fib");
	assert_called("old.lua", 3, 3, "c", "a.b:c");
	assert_called("old.lua", 2, 2, "alias", "fib");
	assert_called("old.lua", 2, 2, "b", "fib");
	assert_called("old.lua", 3, 3, "d", "d");
	assert_called("old.lua", 3, 3, "", "");
}
END_TEST

/* Only where the text says nothing. */
START_TEST(names_of_calls_are_used)
{
	char name[256];

	assert_called("old.lua", 4, 4, "callback", "");
	assert_called("old.lua", 5, 5, "one_of_two", "one_of_two");
	assert_called("missing.lua", 2, 2, "called", "called");
	ck_assert_uint_eq(find("=label", 6, 2, 2, "called", name, sizeof(name)),
	                  6);
	ck_assert_str_eq(name, "called");
	find("=", 1, 2, 2, "called", name, sizeof(name));
	ck_assert_str_eq(name, "called");
	find("=label", 6, 0, 9, "called", name, sizeof(name));
	ck_assert_str_eq(name, "");
	find("function f() end", 16, 1, 1, "called", name, sizeof(name));
	ck_assert_str_eq(name, "f");
	find("f(function() end)", 17, 1, 1, "called", name, sizeof(name));
	ck_assert_str_eq(name, "");
	find("function f(", 11, 1, 1, "called", name, sizeof(name));
	ck_assert_str_eq(name, "called");
	find("=label", 6, 2, 2, "called", name, 6);
	ck_assert_str_eq(name, "");
}
END_TEST

/* bench(work), which calls it f. */
START_TEST(a_parameter_is_no_better_name)
{
	char chunk[PATH_MAX + 1] = "@", name[256];
	struct function_facts function = {
		.chunk = chunk,
		.first_line = 2,
		.last_line = 2,
		.call_name = "f",
		.call_name_bytes = 1,
		.call_name_is_local = true,
	};

	file_path(chunk + 1, "old.lua");
	function.chunk_bytes = strlen(chunk);
	for (int i = 0; i < 3; i++) {
		function_names_find(names, &function, name, sizeof(name));
		ck_assert_str_eq(name, "fib");
	}
	file_path(chunk + 1, "missing.lua");
	function.chunk_bytes = strlen(chunk);
	function_names_find(names, &function, name, sizeof(name));
	ck_assert_str_eq(name, "f");
}
END_TEST

START_TEST(without_debug_information_it_may_be_any)
{
	struct function_facts function = {
		.chunk = "@old.lua",
		.chunk_bytes = 8,
		.call_name = "called",
		.call_name_bytes = 6,
		.stripped = true,
	};
	char name[256];

	ck_assert_uint_eq(
		function_names_find(names, &function, name, sizeof(name)), 6);
	ck_assert_str_eq(name, "called");
	function.call_name_bytes = 0;
	ck_assert_uint_eq(
		function_names_find(names, &function, name, sizeof(name)), 8);
	ck_assert_str_eq(name, "function");
}
END_TEST

START_TEST(relative_path_is_tried)
{
	ck_assert_int_eq(chdir(directory), 0);
	assert_chunk("@old.lua", 8, 2, "fib");
	/* chunk is not terminated */
	assert_chunk("@old.lua.bak", 8, 2, "fib");
}
END_TEST

START_TEST(other_chunks_have_no_file)
{
	char chunk[PATH_MAX + 1] = "@";

	file_path(chunk + 1, "old.lua");
	chunk[0] = '=';
	assert_chunk(chunk, strlen(chunk), 2, "");
	assert_chunk("", 0, 1, "");
	assert_chunk("@", 1, 1, "");
	assert_chunk("@a\0b", 4, 1, "");
}
END_TEST

START_TEST(chunk_called_by_its_text_is_read)
{
	static const char text[] = "local x\nlocal function f() end\n";
	char long_text[FUNCTION_NAMES_TEXT_BYTES];

	assert_chunk(text, sizeof(text) - 1, 2, "f");
	assert_chunk(text, sizeof(text) - 1, 1, "");
	assert_chunk("function f() end", 16, 1, "f");
	assert_chunk("a name", 6, 1, "");
	/* Its last line goes on, perhaps with another function. */
	memset(long_text, ' ', sizeof(long_text));
	memcpy(long_text, "function f() end\nfunction g() end", 33);
	assert_chunk(long_text, sizeof(long_text), 1, "f");
	assert_chunk(long_text, sizeof(long_text), 2, "");
}
END_TEST

START_TEST(what_cannot_be_read_has_no_names)
{
	char path[PATH_MAX];
	static char long_chunk[PATH_MAX * 2];

	assert_file("missing.lua", 1, "");
	assert_file("missing.lua", 1, "");
	assert_file("empty.lua", 1, "");
	assert_file("huge.lua", 1, "");
	assert_file("", 1, "");
	file_path(path, "fifo");
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	assert_file("fifo", 1, "");
	assert_chunk("@/dev/zero", 10, 1, "");
	memset(long_chunk, 'x', sizeof(long_chunk));
	long_chunk[0] = '@';
	assert_chunk(long_chunk, sizeof(long_chunk), 1, "");
}
END_TEST

/* Longer than the clock of /proc, by which a process knows its start. */
static void wait_for_tick(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
}

START_TEST(younger_file_is_not_believed)
{
	wait_for_tick();
	write_file("young.lua", "function young() end\n");
	assert_file("young.lua", 1, "");
}
END_TEST

START_TEST(changed_file_is_not_believed)
{
	wait_for_tick();
	write_file("changed.lua", "function after() end\n");
	assert_file("changed.lua", 1, "");
}
END_TEST

/* As a package manager leaves it: new content, the original's time. */
START_TEST(file_with_a_time_set_back_is_not_believed)
{
	const struct timespec old[2] = {{.tv_sec = 1000000000},
	                                {.tv_sec = 1000000000}};
	char path[PATH_MAX], replaced[PATH_MAX];

	wait_for_tick();
	file_path(path, "new.lua");
	file_path(replaced, "touched.lua");
	write_file("new.lua", "function after() end\n");
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	ck_assert_int_eq(rename(path, replaced), 0);
	assert_file("touched.lua", 1, "");
}
END_TEST

/* A file that is known already is not read again. */
START_TEST(what_was_read_is_kept)
{
	char path[PATH_MAX];

	assert_file("old.lua", 2, "fib");
	file_path(path, "old.lua");
	ck_assert_int_eq(unlink(path), 0);
	assert_file("old.lua", 2, "fib");
	write_file("old.lua", "local x\n"
	                      "local function fib(n) end\n"
	                      "function a.b:c() end\n");
}
END_TEST

START_TEST(many_files_are_read_again)
{
	char name[32], expected[32], path[PATH_MAX];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < MANY_FILES; i++) {
			snprintf(name, sizeof(name), "%d.lua", i);
			snprintf(expected, sizeof(expected), "f%d", i);
			assert_file(name, 1, expected);
		}
	/* The first ones are long forgotten: gone from disk, gone. */
	file_path(path, "0.lua");
	ck_assert_int_eq(unlink(path), 0);
	assert_file("0.lua", 1, "");
	file_path(path, "599.lua");
	ck_assert_int_eq(unlink(path), 0);
	assert_file("599.lua", 1, "f599");
}
END_TEST

START_TEST(name_that_does_not_fit_is_none)
{
	char chunk[PATH_MAX + 1] = "@", name[8];

	file_path(chunk + 1, "old.lua");
	ck_assert_uint_eq(find(chunk, strlen(chunk), 3, 3, "", name, 6), 5);
	ck_assert_str_eq(name, "a.b:c");
	ck_assert_uint_eq(find(chunk, strlen(chunk), 3, 3, "", name, 5), 0);
	ck_assert_str_eq(name, "");
	name[0] = 'x';
	ck_assert_uint_eq(find(chunk, strlen(chunk), 3, 3, "", name, 0), 0);
	ck_assert_int_eq(name[0], 'x');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("function_names");
	TCase *tests = tcase_create("function_names");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, old_file_is_believed);
	tcase_add_test(tests, another_text_is_not_believed_again);
	tcase_add_test(tests, most_functions_are_called_by_their_names);
	tcase_add_test(tests, names_of_calls_are_used);
	tcase_add_test(tests, a_parameter_is_no_better_name);
	tcase_add_test(tests, without_debug_information_it_may_be_any);
	tcase_add_test(tests, relative_path_is_tried);
	tcase_add_test(tests, other_chunks_have_no_file);
	tcase_add_test(tests, chunk_called_by_its_text_is_read);
	tcase_add_test(tests, what_cannot_be_read_has_no_names);
	tcase_add_test(tests, younger_file_is_not_believed);
	tcase_add_test(tests, changed_file_is_not_believed);
	tcase_add_test(tests, file_with_a_time_set_back_is_not_believed);
	tcase_add_test(tests, what_was_read_is_kept);
	tcase_add_test(tests, name_that_does_not_fit_is_none);
	tcase_add_test(tests, many_files_are_read_again);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	make_files();
	srunner_run_all(runner, CK_NORMAL);
	remove_files();
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
