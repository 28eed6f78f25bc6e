// SPDX-License-Identifier: MIT
/*
 * Dumps of all versions that the profiler of Tarantool's LuaJIT has written:
 * symbol tables 1 to 3 and streams 1 and 2, byte by byte, in all pairs.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"
#include "profile/load.h"
#include "profile/select.h"
#include "stream/codec.h"

#define PROTOTYPE    0x7f0000001000u
#define MACHINE_CODE 0x7f00ffff0000u
#define C_FUNCTION   0x401000u

static uint8_t bytes[4096];
static size_t count;

static void put(const char *text, size_t text_bytes)
{
	memcpy(bytes + count, text, text_bytes);
	count += text_bytes;
}

static void put_byte(uint8_t byte)
{
	bytes[count++] = byte;
}

static void put_number(uint64_t number)
{
	count += number_encode(bytes + count, number);
}

static void put_string(const char *string)
{
	put_number(strlen(string));
	put(string, strlen(string));
}

static void put_header(const char *magic, uint8_t version)
{
	put(magic, 3);
	put_byte(version);
	put("\0\0\0", 3);
}

static void put_proto(uint8_t header)
{
	put_byte(header);
	put_number(PROTOTYPE);
	put_string("@old.lua");
	put_number(7);
}

static void put_trace(uint8_t header, bool has_machine_code)
{
	put_byte(header);
	put_number(3);
	if (has_machine_code)
		put_number(MACHINE_CODE);
	put_number(PROTOTYPE);
	put_number(9);
}

static void put_c_symbol(uint8_t header)
{
	put_byte(header);
	put_number(C_FUNCTION);
	put_string("work");
}

/* What each version could have, all in one table. */
static void put_table(uint8_t version, bool has_machine_code)
{
	put_header("ljs", version);
	put_proto(0);
	if (version == 2)
		put_trace(1, has_machine_code);
	if (version == 3) {
		put_c_symbol(1);
		put_trace(2, false);
	}
	put_byte(0x80);
}

static void put_lua_sample(void)
{
	put_byte(STATE_LFUNC);
	put_byte(GUEST_LUA);
	put_number(PROTOTYPE);
	put_number(7);
	put_byte(GUEST_BOTTOM);
	put_number(0);
}

static void put_trace_sample(void)
{
	put_byte(STATE_TRACE);
	put_number(3);
	put_number(PROTOTYPE);
	put_number(7);
}

static void put_native_sample(void)
{
	put_byte(STATE_GC);
	put_number(C_FUNCTION + 16);
	put_number(0);
}

static void put_samples(void)
{
	put_lua_sample();
	put_trace_sample();
	put_native_sample();
	put_byte(0x80);
}

/* The folded stacks of what was put. */
static char *folded(void)
{
	struct profile profile;
	struct profile selected;
	struct load_result result;
	char *text = NULL;
	size_t text_bytes;
	FILE *file = fmemopen(bytes, count, "rb");

	profile_load(&profile, file, "test", &(struct load_options){0},
	             &result);
	fclose(file);
	ck_assert_msg(result.complete, "%s", result.error);
	profile_select(&selected, &profile, &(struct selection){0});
	file = open_memstream(&text, &text_bytes);
	output_folded(file, &selected, "test");
	fclose(file);
	profile_close(&selected);
	profile_close(&profile);
	count = 0;
	return text;
}

static void assert_folded(const char *expected)
{
	char *text = folded();

	ck_assert_str_eq(text, expected);
	free(text);
}

/* ---- tables ------------------------------------------------------------ */

/* Table 1 has no traces and no C functions: numbers and addresses are all there
 * is. */
START_TEST(tables_of_version_1_name_lua_functions)
{
	for (uint8_t stream = 1; stream <= 2; stream++) {
		put_table(1, false);
		put_header("ljp", stream);
		put_samples();
		assert_folded("0x401010 1\n"
		              "function old.lua:7 1\n"
		              "function old.lua:7;TRACE_3 1\n");
	}
}
END_TEST

START_TEST(tables_of_version_2_have_traces_in_two_forms)
{
	for (int form = 0; form < 2; form++) {
		put_table(2, form == 1);
		put_header("ljp", 2);
		put_samples();
		assert_folded("0x401010 1\n"
		              "function old.lua:7 1\n"
		              "function old.lua:7;TRACE_3 old.lua:9 1\n");
	}
}
END_TEST

START_TEST(tables_of_version_3_name_everything)
{
	for (uint8_t stream = 1; stream <= 2; stream++) {
		put_table(3, false);
		put_header("ljp", stream);
		put_samples();
		assert_folded("function old.lua:7 1\n"
		              "function old.lua:7;TRACE_3 old.lua:9 1\n"
		              "work 1\n");
	}
}
END_TEST

/* ---- streams ----------------------------------------------------------- */

START_TEST(streams_of_version_1_have_c_functions_under_10)
{
	put_table(1, false);
	put_header("ljp", 1);
	put_c_symbol(10);
	put_samples();
	assert_folded("function old.lua:7 1\n"
	              "function old.lua:7;TRACE_3 1\n"
	              "work 1\n");
}
END_TEST

/* C functions in the stream (11) were written up to early 2024. */
START_TEST(streams_of_version_2_have_all_symbols)
{
	put_header("ljs", 3);
	put_byte(0x80);
	put_header("ljp", 2);
	put_proto(10);
	put_c_symbol(11);
	put_trace(12, false);
	put_samples();
	assert_folded("function old.lua:7 1\n"
	              "function old.lua:7;TRACE_3 old.lua:9 1\n"
	              "work 1\n");
}
END_TEST

/* ---- what was never written -------------------------------------------- */

static void assert_refused(const char *message)
{
	struct profile profile;
	struct load_result result;
	FILE *file = fmemopen(bytes, count, "rb");

	profile_load(&profile, file, "test", &(struct load_options){0},
	             &result);
	fclose(file);
	ck_assert(!result.complete);
	ck_assert_msg(strstr(result.error, message) != NULL, "%s",
	              result.error);
	profile_close(&profile);
	count = 0;
}

START_TEST(other_versions_are_refused_with_the_ones_that_are_read)
{
	put_header("ljs", 0);
	put_byte(0x80);
	assert_refused("expected a symbol table of version 1 to 3, got "
	               "version 0");
	put_header("ljs", 4);
	put_byte(0x80);
	assert_refused("got version 4");
	put_header("ljs", 3);
	put_byte(0x80);
	put_header("ljp", 3);
	assert_refused("at offset 11 (0xb): expected a stream of version "
	               "1 or 2, got version 3");
	/* Headers 11 and 12 are none in version 1. */
	put_header("ljs", 3);
	put_byte(0x80);
	put_header("ljp", 1);
	put_c_symbol(11);
	assert_refused("expected a record");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump_versions");
	TCase *versions = tcase_create("versions");

	tcase_add_test(versions, tables_of_version_1_name_lua_functions);
	tcase_add_test(versions, tables_of_version_2_have_traces_in_two_forms);
	tcase_add_test(versions, tables_of_version_3_name_everything);
	tcase_add_test(versions,
	               streams_of_version_1_have_c_functions_under_10);
	tcase_add_test(versions, streams_of_version_2_have_all_symbols);
	tcase_add_test(versions,
	               other_versions_are_refused_with_the_ones_that_are_read);
	suite_add_tcase(suite, versions);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
