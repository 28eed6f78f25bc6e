// SPDX-License-Identifier: MIT
/* Ring: order, the wrap, fullness, and one producer against one consumer. */
#include "ring_sig.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define STRESS_RECORDS 400000

struct test_record {
	struct ring_record record;
	uint64_t number;
	uint64_t words[];
};

static size_t record_bytes(size_t words)
{
	return sizeof(struct test_record) + words * sizeof(uint64_t);
}

/* Puts a record of so many words, each of them its number. */
static bool put(struct ring *ring, uint64_t number, size_t words,
                size_t reserved_words)
{
	struct test_record *record =
		ring_reserve(ring, record_bytes(reserved_words));

	if (!record)
		return false;
	record->record.bytes = (uint32_t)record_bytes(words);
	record->record.kind = RING_SAMPLE;
	record->number = number;
	for (size_t i = 0; i < words; i++)
		record->words[i] = number;
	ring_commit(ring, &record->record);
	return true;
}

/* One condition, not one a word: check reports each to its parent. */
static bool is_whole(const struct test_record *record, uint64_t number,
                     size_t words)
{
	if (record->record.kind != RING_SAMPLE || record->number != number ||
	    record->record.bytes != record_bytes(words))
		return false;
	for (size_t i = 0; i < words; i++)
		if (record->words[i] != number)
			return false;
	return true;
}

/* The oldest record is whole and has this number. */
static void expect(struct ring *ring, uint64_t number, size_t words)
{
	const struct test_record *record = (const void *)ring_peek(ring);

	ck_assert_ptr_nonnull(record);
	ck_assert(is_whole(record, number, words));
	ring_release(ring);
}

static void open_ring(struct ring *ring, size_t capacity)
{
	struct error error;

	ck_assert_int_eq(ring_open(ring, capacity, &error), 0);
}

START_TEST(capacity_is_a_power_of_two_of_whole_pages)
{
	struct ring ring;

	open_ring(&ring, 1);
	ck_assert_uint_eq(ring.capacity, 4096);
	ring_close(&ring);
	open_ring(&ring, 4097);
	ck_assert_uint_eq(ring.capacity, 8192);
	ck_assert_ptr_null(ring_peek(&ring));
	ring_close(&ring);
}
END_TEST

START_TEST(memory_that_is_not_there_is_refused)
{
	struct ring ring;
	struct error error;

	ck_assert_int_eq(ring_open(&ring, SIZE_MAX / 2, &error), -1);
	ck_assert_int_eq(error.code, PROFILE_ERRMEM);
	ck_assert_ptr_nonnull(strstr(error.text, "Cannot allocate memory"));
	ring_close(&ring);
}
END_TEST

START_TEST(records_come_out_whole_and_in_order_across_many_wraps)
{
	struct ring ring;
	size_t wraps;

	open_ring(&ring, 4096);
	for (uint64_t i = 0; i < 10000; i++) {
		ck_assert(put(&ring, 2 * i, i % 97, i % 97 + 5));
		ck_assert(put(&ring, 2 * i + 1, i % 13, i % 13));
		expect(&ring, 2 * i, i % 97);
		expect(&ring, 2 * i + 1, i % 13);
		ck_assert_ptr_null(ring_peek(&ring));
	}
	wraps = atomic_load(&ring.head) / ring.capacity;
	ck_assert_uint_gt(wraps, 1000);
	ck_assert_uint_eq(atomic_load(&ring.head), atomic_load(&ring.tail));
	ring_close(&ring);
}
END_TEST

START_TEST(full_ring_refuses_and_takes_again_after_release)
{
	struct ring ring;
	uint64_t count = 0;

	open_ring(&ring, 4096);
	while (put(&ring, count, 14, 14))
		count++;
	ck_assert_uint_eq(count, 4096 / record_bytes(14));
	expect(&ring, 0, 14);
	ck_assert(put(&ring, count, 14, 14));
	ck_assert(!put(&ring, count + 1, 14, 14));
	for (uint64_t i = 1; i <= count; i++)
		expect(&ring, i, 14);
	ck_assert_ptr_null(ring_peek(&ring));
	ring_close(&ring);
}
END_TEST

START_TEST(reserved_but_not_committed_is_never_seen)
{
	struct ring ring;

	open_ring(&ring, 4096);
	ck_assert_ptr_nonnull(ring_reserve(&ring, 2048));
	ck_assert_ptr_null(ring_peek(&ring));
	ck_assert(put(&ring, 7, 3, 200));
	expect(&ring, 7, 3);
	ck_assert_ptr_null(ring_peek(&ring));
	ring_close(&ring);
}
END_TEST

/* A record of half the capacity always finds room in an empty ring, wherever
 * that stands; a bigger one might never, so it is refused at once. */
START_TEST(half_the_capacity_fits_at_every_position)
{
	struct ring ring;
	size_t most = (2048 - sizeof(struct test_record)) / sizeof(uint64_t);

	open_ring(&ring, 4096);
	ck_assert_ptr_null(ring_reserve(&ring, 2056));
	for (uint64_t i = 0; i < 3000; i++) {
		ck_assert(put(&ring, i, i % 7, i % 7));
		expect(&ring, i, i % 7);
		ck_assert(put(&ring, i, i % 3 == 0 ? most : 1, most));
		expect(&ring, i, i % 3 == 0 ? most : 1);
	}
	ring_close(&ring);
}
END_TEST

static struct ring stress_ring;
static atomic_bool stress_done;
static uint64_t stress_refused;

static void *produce(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; i < STRESS_RECORDS; i++) {
		while (!put(&stress_ring, i, i % 61, i % 61 + i % 5)) {
			stress_refused++;
			sched_yield();
		}
	}
	atomic_store(&stress_done, true);
	return NULL;
}

START_TEST(producer_and_consumer_at_the_same_time)
{
	const struct test_record *record;
	pthread_t thread;
	uint64_t next = 0;
	bool whole = true;
	bool done;

	open_ring(&stress_ring, 8192);
	ck_assert_int_eq(pthread_create(&thread, NULL, produce, NULL), 0);
	do {
		done = atomic_load(&stress_done);
		while ((record = (const void *)ring_peek(&stress_ring))) {
			whole &= is_whole(record, next, next % 61);
			ring_release(&stress_ring);
			next++;
		}
		sched_yield();
	} while (!done);
	pthread_join(thread, NULL);
	ck_assert(whole);
	ck_assert_uint_eq(next, STRESS_RECORDS);
	/* Otherwise the consumer was never behind, and little was tried. */
	ck_assert_uint_gt(stress_refused, 0);
	ring_close(&stress_ring);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tests = tcase_create("ring");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, capacity_is_a_power_of_two_of_whole_pages);
	tcase_add_test(tests, memory_that_is_not_there_is_refused);
	tcase_add_test(tests,
	               records_come_out_whole_and_in_order_across_many_wraps);
	tcase_add_test(tests, full_ring_refuses_and_takes_again_after_release);
	tcase_add_test(tests, reserved_but_not_committed_is_never_seen);
	tcase_add_test(tests, half_the_capacity_fits_at_every_position);
	tcase_add_test(tests, producer_and_consumer_at_the_same_time);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
