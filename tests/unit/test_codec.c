// SPDX-License-Identifier: MIT
/*
 * Bytes, numbers and strings: exact encodings, the contract with the flusher,
 * and an input that may lie about its lengths.
 */
#include "stream/codec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump_fixture.h"

/* ---- output ------------------------------------------------------------ */

static void assert_number(uint64_t number, const char *expected, size_t count)
{
	uint8_t bytes[NUMBER_BYTES_MAX];
	struct byte_input in;
	uint64_t back;

	ck_assert_uint_eq(number_encode(bytes, number), count);
	ck_assert_mem_eq(bytes, expected, count);
	byte_input_open_memory(&in, bytes, count, 0);
	ck_assert(byte_input_get_number(&in, &back));
	ck_assert_uint_eq(back, number);
	ck_assert(byte_input_at_end(&in));
}

START_TEST(numbers_have_their_shortest_form)
{
	assert_number(0, "\x00", 1);
	assert_number(127, "\x7f", 1);
	assert_number(128, "\x80\x01", 2);
	assert_number(16383, "\xff\x7f", 2);
	assert_number(16384, "\x80\x80\x01", 3);
	assert_number(UINT64_C(1) << 63,
	              "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10);
	assert_number(UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	              10);
}
END_TEST

START_TEST(zigzag_takes_every_signed_number)
{
	const int64_t numbers[] = {0, -1, 1, -2, 2, INT64_MAX, INT64_MIN};
	const uint64_t expected[] = {0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		ck_assert_uint_eq(number_zigzag(numbers[i]), expected[i]);
		ck_assert_int_eq(number_unzigzag(expected[i]), numbers[i]);
	}
}
END_TEST

/* A flusher with faults. */
struct faulty {
	size_t calls;
	size_t short_at; /* this call takes a byte less than it is given */
	size_t null_at;  /* this one takes the buffer away */
	uint8_t *other;  /* what every call leaves as the next buffer */
	struct memory_dump dump;
};

static size_t faulty_flush(const void **data, size_t bytes, void *context)
{
	struct faulty *faulty = context;

	faulty->calls++;
	memory_dump_flush(data, bytes, &faulty->dump);
	if (faulty->other != NULL) {
		uint8_t *full = (uint8_t *)(uintptr_t)*data;

		memset(full, 0xee, bytes); /* it is the flusher's now */
		*data = faulty->other;
		faulty->other = full;
	}
	if (faulty->calls == faulty->null_at)
		*data = NULL;
	return faulty->calls == faulty->short_at ? bytes - 1 : bytes;
}

static void put_all(struct byte_output *out)
{
	byte_output_put_byte(out, 0x42);
	byte_output_put_number(out, UINT64_MAX);
	byte_output_put_string(out, "hello, world", 12);
	byte_output_flush(out);
}

static const char all_bytes[] =
	"\x42\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x0chello, world";
#define ALL_BYTES (sizeof(all_bytes) - 1)

START_TEST(any_buffer_size_gives_the_same_bytes)
{
	for (size_t capacity = 1; capacity < 40; capacity++) {
		struct memory_dump dump = {0};
		struct byte_output out;
		uint8_t *buffer = malloc(capacity); /* overruns show in ASan */

		byte_output_open(&out, buffer, capacity, memory_dump_flush,
		                 &dump);
		put_all(&out);
		ck_assert(byte_output_is_open(&out));
		ck_assert_uint_eq(dump.count, ALL_BYTES);
		ck_assert_mem_eq(dump.bytes, all_bytes, ALL_BYTES);
		free(buffer);
		memory_dump_free(&dump);
	}
}
END_TEST

START_TEST(a_short_write_fails_the_stream)
{
	for (size_t call = 1; call <= 6; call++) {
		struct faulty faulty = {.short_at = call};
		struct byte_output out;
		uint8_t buffer[4];

		byte_output_open(&out, buffer, sizeof(buffer), faulty_flush,
		                 &faulty);
		put_all(&out);
		ck_assert(out.failed);
		ck_assert(!out.ended);
		ck_assert(!byte_output_is_open(&out));
		ck_assert_uint_eq(faulty.calls, call);
		put_all(&out);
		ck_assert(!byte_output_flush(&out));
		ck_assert_uint_eq(faulty.calls, call);
		memory_dump_free(&faulty.dump);
	}
}
END_TEST

START_TEST(a_null_buffer_ends_the_stream)
{
	for (size_t call = 1; call <= 6; call++) {
		struct faulty faulty = {.null_at = call};
		struct byte_output out;
		uint8_t buffer[4];

		byte_output_open(&out, buffer, sizeof(buffer), faulty_flush,
		                 &faulty);
		put_all(&out);
		put_all(&out);
		ck_assert(out.ended);
		ck_assert(!out.failed);
		ck_assert(!byte_output_flush(&out));
		ck_assert_uint_eq(faulty.calls, call);
		memory_dump_free(&faulty.dump);
	}
}
END_TEST

START_TEST(the_flusher_may_exchange_the_buffer)
{
	uint8_t first[4];
	uint8_t second[4];
	struct faulty faulty = {.other = second};
	struct byte_output out;

	byte_output_open(&out, first, sizeof(first), faulty_flush, &faulty);
	put_all(&out);
	ck_assert_uint_eq(faulty.dump.count, ALL_BYTES);
	ck_assert_mem_eq(faulty.dump.bytes, all_bytes, ALL_BYTES);
	memory_dump_free(&faulty.dump);
}
END_TEST

/* ---- input ------------------------------------------------------------- */

static void assert_bad_number(const char *bytes, size_t count,
                              enum byte_input_problem problem)
{
	struct byte_input in;
	uint64_t number;

	byte_input_open_memory(&in, bytes, count, 100);
	ck_assert(!byte_input_get_number(&in, &number));
	ck_assert_int_eq(in.problem, problem);
	ck_assert_uint_eq(in.problem_offset, 100);
	ck_assert(!byte_input_get_number(&in, &number));
}

START_TEST(overlong_numbers_are_read_larger_ones_are_not)
{
	struct byte_input in;
	uint64_t number;

	byte_input_open_memory(
		&in, "\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12, 0);
	ck_assert(byte_input_get_number(&in, &number));
	ck_assert_uint_eq(number, 1);
	ck_assert_uint_eq(byte_input_offset(&in), 12);

	assert_bad_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10,
	                  INPUT_BAD_NUMBER);
	assert_bad_number("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11,
	                  INPUT_BAD_NUMBER);
	assert_bad_number("\xff\xff", 2, INPUT_END);
	assert_bad_number("", 0, INPUT_END);
}
END_TEST

START_TEST(a_lying_length_costs_no_memory)
{
	/* 2^62 bytes are promised, three are there. */
	const char bytes[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x40"
			     "abc";
	struct byte_string string = {0};
	struct byte_input in;

	byte_input_open_memory(&in, bytes, sizeof(bytes) - 1, 0);
	ck_assert(!byte_input_get_string(&in, &string, SIZE_MAX / 2));
	ck_assert_int_eq(in.problem, INPUT_END);
	ck_assert_uint_eq(in.problem_offset, 0);
	ck_assert_uint_lt(string.capacity, 64);
	ck_assert(!string.out_of_memory);
	byte_string_free(&string);
}
END_TEST

START_TEST(strings_are_cut_at_the_limit)
{
	struct byte_string string = {0};
	struct byte_input in;
	uint8_t byte;

	byte_input_open_memory(&in, "\x05helloZ", 7, 0);
	ck_assert(byte_input_get_string(&in, &string, 3));
	ck_assert_uint_eq(string.length, 3);
	ck_assert_str_eq(string.bytes, "hel");
	ck_assert(byte_input_get_byte(&in, &byte));
	ck_assert_int_eq(byte, 'Z');
	byte_string_free(&string);
}
END_TEST

/* 100,000 bytes 0, 1, 2, … through a pipe, which cannot seek. */
START_TEST(a_pipe_is_read_with_the_right_offsets)
{
	static uint8_t chunk[100];
	struct byte_input in;
	int ends[2];
	uint8_t byte;

	ck_assert_int_eq(pipe(ends), 0);
	if (fork() == 0) {
		for (int i = 0; i < 100000; i++)
			if (write(ends[1], &(uint8_t){(uint8_t)i}, 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(ends[1]);

	FILE *file = fdopen(ends[0], "rb");
	byte_input_open_reader(&in, byte_input_read_file, file, chunk,
	                       sizeof(chunk));
	for (int i = 0; i < 100000; i++) {
		ck_assert_uint_eq(byte_input_offset(&in), i);
		ck_assert(byte_input_get_byte(&in, &byte));
		ck_assert_int_eq(byte, i & 0xff);
	}
	ck_assert(byte_input_at_end(&in));
	ck_assert(!byte_input_get_byte(&in, &byte));
	ck_assert_int_eq(in.problem, INPUT_END);
	ck_assert_uint_eq(in.problem_offset, 100000);
	fclose(file);
}
END_TEST

START_TEST(a_read_error_is_told_from_an_end)
{
	static uint8_t chunk[100];
	struct byte_input in;
	FILE *file = fopen("/", "rb"); /* opens, cannot be read */
	uint8_t byte;

	ck_assert_ptr_nonnull(file);
	byte_input_open_reader(&in, byte_input_read_file, file, chunk,
	                       sizeof(chunk));
	ck_assert(!byte_input_at_end(&in));
	ck_assert(!byte_input_get_byte(&in, &byte));
	ck_assert_int_eq(in.problem, INPUT_READ_FAILED);
	ck_assert_ptr_nonnull(
		strstr(byte_input_problem_text(&in), "directory"));
	fclose(file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("codec");
	TCase *output = tcase_create("output");
	TCase *input = tcase_create("input");

	tcase_add_test(output, numbers_have_their_shortest_form);
	tcase_add_test(output, zigzag_takes_every_signed_number);
	tcase_add_test(output, any_buffer_size_gives_the_same_bytes);
	tcase_add_test(output, a_short_write_fails_the_stream);
	tcase_add_test(output, a_null_buffer_ends_the_stream);
	tcase_add_test(output, the_flusher_may_exchange_the_buffer);
	suite_add_tcase(suite, output);
	tcase_add_test(input, overlong_numbers_are_read_larger_ones_are_not);
	tcase_add_test(input, a_lying_length_costs_no_memory);
	tcase_add_test(input, strings_are_cut_at_the_limit);
	tcase_add_test(input, a_pipe_is_read_with_the_right_offsets);
	tcase_add_test(input, a_read_error_is_told_from_an_end);
	suite_add_tcase(suite, input);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
