// SPDX-License-Identifier: MIT
/*
 * The dump, written by the encoder and read back by the tools: exact bytes of
 * every record, every item, and dumps that were cut or damaged.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "dump_fixture.h"
#include "profile/dump_reader.h"
#include "profile/load.h"
#include "stream/sysprof_write.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

static struct sysprof_encoder encoder;
static struct memory_dump dump;
static uint8_t buffer[64];

static void setup(void)
{
	dump = (struct memory_dump){0};
	sysprof_encoder_open(&encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, &dump);
}

static void teardown(void)
{
	memory_dump_free(&dump);
}

static FILE *open_bytes(const uint8_t *bytes, size_t count)
{
	/* fmemopen refuses a size of 0. */
	FILE *file = count > 0 ? fmemopen((void *)(uintptr_t)bytes, count, "rb")
	                       : fopen("/dev/null", "rb");

	ck_assert_ptr_nonnull(file);
	return file;
}

static void load(struct profile *profile, const uint8_t *bytes, size_t count,
                 struct load_result *result)
{
	const struct load_options options = {0};
	FILE *file = open_bytes(bytes, count);

	profile_load(profile, file, "test", &options, result);
	fclose(file);
}

/* ---- exact bytes ------------------------------------------------------- */

static void assert_written(const char *expected, size_t count)
{
	sysprof_encoder_flush(&encoder);
	ck_assert_uint_eq(dump.count, count);
	ck_assert_mem_eq(dump.bytes, expected, count);
}

#define ASSERT_WRITTEN(literal) assert_written(literal, sizeof(literal) - 1)

START_TEST(prologue_is_two_headers)
{
	sysprof_write_prologue(&encoder);
	ck_assert(sysprof_write_end(&encoder));
	ASSERT_WRITTEN("ljs\x03\0\0\0\x80"
	               "ljp\x02\0\0\0\x80");
}
END_TEST

START_TEST(symbols_have_their_headers_in_both_parts)
{
	for (int part = 0; part < 2; part++) {
		setup();
		if (part == 0)
			sysprof_write_symtab_begin(&encoder);
		else
			sysprof_write_prologue(&encoder);
		sysprof_encoder_flush(&encoder);
		dump.count = 0;
		sysprof_write_proto(&encoder, 300, "@a", 2, UINT32_MAX);
		sysprof_write_c_symbol(&encoder, 5, "f");
		sysprof_write_trace(&encoder, 6, 300, 7);
		if (part == 0)
			ASSERT_WRITTEN(
				"\x00\xac\x02\x02@a\xff\xff\xff\xff\xff\xff\xff"
				"\xff\xff\x01"
				"\x01\x05\x01"
				"f"
				"\x02\x06\xac\x02\x07");
		else
			ASSERT_WRITTEN(
				"\x0a\xac\x02\x02@a\xff\xff\xff\xff\xff\xff\xff"
				"\xff\xff\x01"
				"\x0b\x05\x01"
				"f"
				"\x0c\x06\xac\x02\x07");
		teardown();
	}
}
END_TEST

START_TEST(samples_have_the_parts_of_their_state)
{
	const struct guest_entry guest[] = {
		{.type = GUEST_FAST, .value = 9},
		{.type = GUEST_C, .value = 10},
		{.type = GUEST_LUA, .value = 11, .first_line = 12},
	};
	const uint64_t host[] = {1, 0, 2}; /* 0 would end the list */

	sysprof_write_sample(&encoder, STATE_FFUNC, guest, 3, host, 3);
	sysprof_write_sample(&encoder, STATE_GC, guest, 3, host, 3);
	sysprof_write_sample(&encoder, STATE_LFUNC, NULL, 0, NULL, 0);
	sysprof_write_trace_sample(&encoder, 3, 4, 5);
	sysprof_write_trace_sample(&encoder, 0, 4, 5); /* not known */
	ASSERT_WRITTEN("\x02\x03\x09\x02\x0a\x01\x0b\x0c\x80\x01\x02\x00"
	               "\x04\x01\x02\x00"
	               "\x01\x80\x00"
	               "\x09\x03\x04\x05"
	               "\x09\xff\xff\xff\xff\x0f\x04\x05");
}
END_TEST

START_TEST(the_reserved_address_is_for_the_extension_alone)
{
	sysprof_write_c_symbol(&encoder, EXTENSION_ADDRESS, "fake");
	sysprof_encoder_flush(&encoder);
	ck_assert_uint_eq(dump.count, 0);
}
END_TEST

START_TEST(items_wait_for_the_next_record_and_keep_their_order)
{
	const struct stack_node node = {.kind = FRAME_LUA,
	                                .value = 2,
	                                .line = 3,
	                                .flags = FRAME_FLAG_COMPILED};

	sysprof_write_node(&encoder, 0, &node);
	sysprof_write_reset_nodes(&encoder);
	sysprof_write_c_symbol(&encoder, 5, "f");
	sysprof_write_lost(&encoder, LOST_NESTED, 4);
	ASSERT_WRITTEN("\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08"
	               "\x04\x04\x00\x12\x02\x03"
	               "\x06\x00"
	               "\x0b\x05\x01"
	               "f"
	               "\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04"
	               "\x07\x02\x03\x04");
}
END_TEST

START_TEST(the_buffer_size_does_not_change_the_dump)
{
	struct memory_dump whole;
	struct memory_dump pieces;

	small_dump_write(&whole, 4096);
	for (size_t bytes = 1; bytes < 70; bytes++) {
		small_dump_write(&pieces, bytes);
		ck_assert_uint_eq(pieces.count, whole.count);
		ck_assert_mem_eq(pieces.bytes, whole.bytes, whole.count);
		memory_dump_free(&pieces);
	}
	memory_dump_free(&whole);
}
END_TEST

/* ---- read back --------------------------------------------------------- */

static void assert_record(struct dump_reader *reader,
                          struct dump_record *record,
                          enum dump_record_kind kind)
{
	ck_assert_int_eq(dump_reader_next(reader, record), DUMP_READ_RECORD);
	ck_assert_int_eq(record->kind, kind);
}

START_TEST(records_are_read_back)
{
	struct dump_reader *reader = calloc(1, sizeof(*reader));
	struct dump_record record;
	const struct guest_entry guest[] = {
		{.type = GUEST_LUA, .value = 11, .first_line = UINT32_MAX}};
	const uint64_t host[] = {UINT64_MAX, 2};

	sysprof_write_symtab_begin(&encoder);
	sysprof_write_proto(&encoder, UINT64_MAX, "=\0x", 3, 12);
	sysprof_write_stream_begin(&encoder);
	sysprof_write_c_symbol(&encoder, 0, "");
	sysprof_write_trace(&encoder, 1, 2, 3);
	sysprof_write_sample(&encoder, STATE_CFUNC, guest, 1, host, 2);
	sysprof_write_trace_sample(&encoder, 4, 5, 6);
	sysprof_write_end(&encoder);

	FILE *file = open_bytes(dump.bytes, dump.count);
	ck_assert(dump_reader_open(reader, file, "test"));
	assert_record(reader, &record, DUMP_PROTO);
	ck_assert_uint_eq(record.offset, 7);
	ck_assert_uint_eq(record.address, UINT64_MAX);
	ck_assert_uint_eq(record.text_bytes, 3);
	ck_assert_mem_eq(record.text, "=\0x", 4);
	ck_assert_uint_eq(record.line, 12);
	assert_record(reader, &record, DUMP_C_SYMBOL);
	ck_assert_uint_eq(record.address, 0);
	ck_assert_uint_eq(record.text_bytes, 0);
	assert_record(reader, &record, DUMP_TRACE);
	ck_assert_uint_eq(record.number, 1);
	ck_assert_uint_eq(record.address, 2);
	ck_assert_uint_eq(record.line, 3);
	assert_record(reader, &record, DUMP_SAMPLE);
	ck_assert_int_eq(record.state, STATE_CFUNC);
	ck_assert_uint_eq(record.guest_count, 1);
	ck_assert_uint_eq(record.guest[0].value, 11);
	ck_assert_uint_eq(record.guest[0].line, UINT64_MAX);
	ck_assert_uint_eq(record.host_count, 2);
	ck_assert_uint_eq(record.host[0], UINT64_MAX);
	assert_record(reader, &record, DUMP_TRACE_SAMPLE);
	ck_assert_uint_eq(record.number, 4);
	ck_assert_uint_eq(record.address, 5);
	ck_assert_uint_eq(record.line, 6);
	ck_assert_int_eq(dump_reader_next(reader, &record), DUMP_READ_END);
	ck_assert(!dump_reader_has_trailing(reader));
	dump_reader_close(reader);
	fclose(file);
	free(reader);
}
END_TEST

START_TEST(the_session_is_read_back)
{
	struct profile profile;
	struct load_result result;

	small_dump_write(&dump, 100);
	load(&profile, dump.bytes, dump.count, &result);
	ck_assert_msg(result.complete, "%s", result.error);
	ck_assert(profile.session.known);
	ck_assert_uint_eq(profile.session.version, EXTENSION_VERSION);
	ck_assert_uint_eq(profile.session.pid, 4321);
	ck_assert_uint_eq(profile.session.mode, 2);
	ck_assert_uint_eq(profile.session.interval_ns, 10000000);
	ck_assert_uint_eq(profile.session.start_monotonic_ns, 1000);
	ck_assert_uint_eq(profile.session.start_realtime_ns,
	                  1700000000000000000);
	ck_assert_str_eq(profile.session.clock, "perf task clock");
	ck_assert_str_eq(profile.session.vm, "LuaJIT 2.1");
	ck_assert_str_eq(profile.session.writer, "test 1.0");
	ck_assert(profile.session.ended);
	ck_assert_uint_eq(profile.session.stop_monotonic_ns, 70001001);
	ck_assert_uint_eq(profile.session.sample_count, SMALL_DUMP_SAMPLES);
	ck_assert_uint_eq(profile.session.lost_count, SMALL_DUMP_LOST);
	ck_assert_uint_eq(profile.lost[LOST_RING_FULL], 3);
	ck_assert_uint_eq(profile.lost[LOST_NESTED], 2);
	ck_assert_uint_eq(profile_lost_count(&profile), SMALL_DUMP_LOST);
	profile_close(&profile);
}
END_TEST

START_TEST(samples_are_counted_by_state)
{
	struct profile profile;
	struct load_result result;

	small_dump_write(&dump, 100);
	load(&profile, dump.bytes, dump.count, &result);
	ck_assert_uint_eq(profile.sample_count, SMALL_DUMP_SAMPLES);
	for (int state = 0; state < STATE_COUNT; state++) {
		bool absent = state == STATE_RECORD || state == STATE_OPT ||
		              state == STATE_ASM;

		ck_assert_uint_eq(profile.by_state[state], absent ? 0 : 1);
	}
	ck_assert_uint_eq(profile.gaps.joined_count, 0);
	ck_assert_uint_eq(profile.gaps.trace_count, 0);
	ck_assert_uint_eq(profile.gaps.no_guest_count, 0);
	profile_close(&profile);
}
END_TEST

/* A kind from the future, and a known item with fields from the future. */
START_TEST(what_is_not_known_is_skipped)
{
	struct profile profile;
	struct load_result result;

	sysprof_write_prologue(&encoder);
	byte_output_put_byte(&encoder.out, SYSPROF_NEW_C);
	byte_output_put_number(&encoder.out, EXTENSION_ADDRESS);
	byte_output_put_string(&encoder.out,
	                       "\x63\x03xyz"
	                       "\x07\x05\x01\x09!!!",
	                       12);
	sysprof_write_end(&encoder);
	load(&profile, dump.bytes, dump.count, &result);
	ck_assert_msg(result.complete, "%s", result.error);
	ck_assert_uint_eq(profile.lost[LOST_RING_FULL], 9);
	profile_close(&profile);
}
END_TEST

static void assert_extension_refused(const char *items, size_t bytes,
                                     const char *message)
{
	struct profile profile;
	struct load_result result;

	setup();
	sysprof_write_prologue(&encoder);
	byte_output_put_byte(&encoder.out, SYSPROF_NEW_C);
	byte_output_put_number(&encoder.out, EXTENSION_ADDRESS);
	byte_output_put_string(&encoder.out, items, bytes);
	sysprof_write_end(&encoder);
	load(&profile, dump.bytes, dump.count, &result);
	ck_assert(!result.complete);
	ck_assert_msg(strstr(result.error, message) != NULL, "%s",
	              result.error);
	profile_close(&profile);
	teardown();
}

START_TEST(damaged_items_are_refused_with_their_place)
{
	/* The payload begins at offset 27. */
	assert_extension_refused("\x07\x02\x01\x09\x04", 5,
	                         "at offset 32 (0x20): expected the length in "
	                         "an extension item, but got: the item ends");
	assert_extension_refused("\x07\x05\x01", 3,
	                         "at offset 27 (0x1b): expected an extension "
	                         "item of at most 1 bytes, got one of 5");
	assert_extension_refused("\x07\x01\x01", 3,
	                         "at offset 30 (0x1e): expected the count of "
	                         "lost samples");
	assert_extension_refused("\x04\x03\x01\x01\x05", 5,
	                         "expected the parent of a node to be one of 0 "
	                         "nodes, got node 1");
	assert_extension_refused("\x04\x03\x00\x0f\x05", 5,
	                         "expected a frame kind from 1 to 5, got 15");
	assert_extension_refused("\x05\x05\x00\x00\x00\x00\x07", 7,
	                         "expected the leaf of a sample to be one of 0 "
	                         "nodes, got node 7");
	assert_extension_refused("\x01\x01\x02", 3,
	                         "expected extension version 1, got 2");
}
END_TEST

START_TEST(version_1_has_c_symbols_under_10)
{
	const char bytes[] = "ljs\x01\0\0\0\x80ljp\x01\0\0\0"
			     "\x0a\x05\x01"
			     "f"
			     "\x00\x06\x00\x80";
	struct profile profile;
	struct load_result result;

	load(&profile, (const uint8_t *)bytes, sizeof(bytes) - 1, &result);
	ck_assert_msg(result.complete, "%s", result.error);
	ck_assert_uint_eq(profile.by_state[STATE_INTERP], 1);
	ck_assert_uint_eq(profile.frame_count, 2);
	ck_assert_str_eq(profile.frames[1].name, "[f]");
	profile_close(&profile);
}
END_TEST

/* ---- damage ------------------------------------------------------------ */

START_TEST(a_dump_cut_anywhere_gives_what_was_whole)
{
	uint64_t before = 0;

	small_dump_write(&dump, 100);
	for (size_t count = 0; count < dump.count; count++) {
		struct profile profile;
		struct load_result result;
		uint8_t *cut = malloc(count + 1); /* reads behind it show */

		memcpy(cut, dump.bytes, count);
		load(&profile, cut, count, &result);
		ck_assert(!result.complete);
		ck_assert_ptr_nonnull(strstr(result.error, "test: at offset "));
		ck_assert_ptr_nonnull(strstr(result.error, "the input ends"));
		ck_assert_uint_ge(profile.sample_count, before);
		before = profile.sample_count;
		profile_close(&profile);
		free(cut);
	}
	ck_assert_uint_eq(before, SMALL_DUMP_SAMPLES);
}
END_TEST

START_TEST(a_flipped_bit_is_read_or_refused)
{
	size_t refused = 0;

	small_dump_write(&dump, 100);
	for (size_t bit = 0; bit < dump.count * 8; bit++) {
		struct profile profile;
		struct load_result result;

		dump.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		load(&profile, dump.bytes, dump.count, &result);
		ck_assert(result.complete == (result.error[0] == '\0'));
		refused += !result.complete;
		profile_close(&profile);
		dump.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	ck_assert_uint_gt(refused, dump.count);
}
END_TEST

static void assert_lying_dump(const char *bytes, size_t count)
{
	struct profile profile;
	struct load_result result;

	load(&profile, (const uint8_t *)bytes, count, &result);
	ck_assert(!result.complete);
	ck_assert_ptr_nonnull(strstr(result.error, "the input ends"));
	profile_close(&profile);
}

/* Strings of 2^62 bytes, where 64 MiB of memory must do. Sanitizers need more
 * address space than can be limited here; test_codec looks at the capacity. */
START_TEST(lying_lengths_take_no_memory)
{
#if !SANITIZED
	const struct rlimit limit = {64u << 20, 64u << 20};

	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
#define HUGE         "\x80\x80\x80\x80\x80\x80\x80\x80\x40"
#define LIE(literal) assert_lying_dump(literal, sizeof(literal) - 1)
	LIE("ljs\x03\0\0\0\x00\x05" HUGE "abc");
	LIE("ljs\x03\0\0\0\x01\x05" HUGE "abc");
	LIE("ljs\x03\0\0\0\x80ljp\x02\0\0\0\x0a\x05" HUGE "abc");
	LIE("ljs\x03\0\0\0\x80ljp\x02\0\0\0\x0b\xff\xff\xff\xff\xff\xff\xff\xff"
	    "\xff\x01" HUGE "abc");
}
END_TEST

START_TEST(endless_stacks_are_refused)
{
	size_t count = 15 + 3 * (size_t)DUMP_FRAMES_MAX;
	uint8_t *bytes = malloc(count);
	struct profile profile;
	struct load_result result;

	memset(bytes, 1, count); /* a host stack of addresses 1 */
	memcpy(bytes, "ljs\x03\0\0\0\x80ljp\x02\0\0\0", 15);
	bytes[15] = STATE_GC;
	load(&profile, bytes, count, &result);
	ck_assert(!result.complete);
	ck_assert_ptr_nonnull(strstr(result.error, "at most 262144 frames"));
	profile_close(&profile);
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sysprof_stream");
	TCase *bytes = tcase_create("bytes");
	TCase *back = tcase_create("back");
	TCase *damage = tcase_create("damage");

	tcase_add_checked_fixture(bytes, setup, teardown);
	tcase_add_test(bytes, prologue_is_two_headers);
	tcase_add_test(bytes, symbols_have_their_headers_in_both_parts);
	tcase_add_test(bytes, samples_have_the_parts_of_their_state);
	tcase_add_test(bytes, the_reserved_address_is_for_the_extension_alone);
	tcase_add_test(bytes,
	               items_wait_for_the_next_record_and_keep_their_order);
	tcase_add_test(bytes, the_buffer_size_does_not_change_the_dump);
	suite_add_tcase(suite, bytes);

	tcase_add_checked_fixture(back, setup, teardown);
	tcase_add_test(back, records_are_read_back);
	tcase_add_test(back, the_session_is_read_back);
	tcase_add_test(back, samples_are_counted_by_state);
	tcase_add_test(back, what_is_not_known_is_skipped);
	tcase_add_test(back, damaged_items_are_refused_with_their_place);
	tcase_add_test(back, version_1_has_c_symbols_under_10);
	suite_add_tcase(suite, back);

	tcase_add_checked_fixture(damage, setup, teardown);
	tcase_set_timeout(damage, 60);
	tcase_add_test(damage, a_dump_cut_anywhere_gives_what_was_whole);
	tcase_add_test(damage, a_flipped_bit_is_read_or_refused);
	tcase_add_test(damage, lying_lengths_take_no_memory);
	tcase_add_test(damage, endless_stacks_are_refused);
	suite_add_tcase(suite, damage);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
