// SPDX-License-Identifier: MIT
/*
 * Names for perf: code that comes to the memory of other code takes its lines out
 * of the map file, and a flush of one owner leaves the lines of others alone.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perf_names.h"

#define AREA 0x7f0000000000

static struct perf_names *names;
static char path[64];

static void open_names(void)
{
	names = perf_names_open(
		&(struct perf_names_options){.kind = PERF_NAMES_MAP}, NULL);
	ck_assert_ptr_nonnull(names);
	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
}

/* A trace of 64 bytes at an offset in an area of 4 KiB. */
static void put(uint64_t owner, uint64_t offset, uint32_t number)
{
	struct code_record *record = calloc(1, sizeof(*record) + 64);
	uint64_t address = AREA + offset;

	ck_assert_ptr_nonnull(record);
	*record = (struct code_record){
		.kind = CODE_TRACE,
		.owner = owner,
		.trace_number = number,
		.address = address,
		.bytes = 64,
		.area_start = address & ~UINT64_C(0xfff),
		.area_end = (address & ~UINT64_C(0xfff)) + 4096,
		.contents = (uint8_t *)(record + 1),
		.start = {address, 1, 6, "@a.lua"},
	};
	perf_names_push(names, record);
}

static void put_flush(uint64_t owner)
{
	struct code_record *record = calloc(1, sizeof(*record));

	ck_assert_ptr_nonnull(record);
	record->kind = CODE_FLUSH;
	record->owner = owner;
	perf_names_push(names, record);
}

static void expect(const char *lines)
{
	char got[1024];
	FILE *file;

	perf_names_drain(names);
	perf_names_flush(names);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	got[fread(got, 1, sizeof(got) - 1, file)] = '\0';
	fclose(file);
	unlink(path);
	ck_assert_str_eq(got, lines);
}

START_TEST(gone_code_keeps_its_line)
{
	open_names();
	put(1, 0x100, 1);
	put_flush(1);
	put(1, 0x9000, 1); /* in another area */
	expect("7f0000000100 40 TRACE_1 a.lua:1\n"
	       "7f0000009000 40 TRACE_1 a.lua:1\n");
}
END_TEST

START_TEST(new_code_takes_out_what_is_gone_around_it)
{
	open_names();
	put(1, 0x100, 1);
	put(1, 0x180, 2);
	put_flush(1);
	put(1, 0x120, 3);
	expect("7f0000000120 40 TRACE_3 a.lua:1\n");
}
END_TEST

/* As where a flush was missed. */
START_TEST(new_code_takes_out_what_it_overlaps)
{
	open_names();
	put(1, 0x100, 1);
	put(1, 0x180, 2);
	put(1, 0x120, 3);
	expect("7f0000000180 40 TRACE_2 a.lua:1\n"
	       "7f0000000120 40 TRACE_3 a.lua:1\n");
}
END_TEST

START_TEST(flush_is_of_its_owner)
{
	open_names();
	put(1, 0x100, 1);
	put(2, 0x200, 1);
	put_flush(2);
	put(2, 0x220, 2);
	put(2, 0x300, 3);
	expect("7f0000000100 40 TRACE_1 a.lua:1\n"
	       "7f0000000220 40 TRACE_2 a.lua:1\n"
	       "7f0000000300 40 TRACE_3 a.lua:1\n");
}
END_TEST

START_TEST(code_that_is_told_of_twice_has_one_line)
{
	open_names();
	put(1, 0x100, 1);
	put(1, 0x100, 1);
	expect("7f0000000100 40 TRACE_1 a.lua:1\n");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("perf_names");
	TCase *tests = tcase_create("perf_names");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tests, gone_code_keeps_its_line);
	tcase_add_test(tests, new_code_takes_out_what_is_gone_around_it);
	tcase_add_test(tests, new_code_takes_out_what_it_overlaps);
	tcase_add_test(tests, flush_is_of_its_owner);
	tcase_add_test(tests, code_that_is_told_of_twice_has_one_line);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
