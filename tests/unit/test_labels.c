// SPDX-License-Identifier: MIT
/*
 * The table of labels: what coroutines come to have, lose and inherit from an
 * address, and where the table ends. Each test runs in a process, and so has a
 * table, of its own.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "labels_state.h"

#define COROUTINES_MAX (LABELLED_MAX / 4 * 3)
#define TEXTS_MAX      (LABEL_TEXTS_MAX / 4 * 3)

#define COROUTINE UINT64_C(0x7f0012345670)
#define WITNESS   UINT64_C(0x7f0076543210)

/* As lua_States lie in memory: at multiples of 16, more or less apart. */
static uint64_t address(uint32_t number)
{
	return COROUTINE + (uint64_t)number * 0x70;
}

static int set(uint64_t coroutine, const char *text)
{
	uint64_t serial;

	return labels_set(coroutine, WITNESS, text, strlen(text), &serial,
	                  NULL);
}

static uint32_t find(uint64_t coroutine)
{
	uint64_t witness;

	return labels_find(coroutine, &witness);
}

#define ASSERT_LABEL(coroutine, text)                                          \
	ck_assert_str_eq(labels_text(find(coroutine)), text)

START_TEST(nothing_has_a_label_at_first)
{
	ck_assert_uint_eq(find(COROUTINE), 0);
	ck_assert_str_eq(labels_text(0), "");
	ck_assert_str_eq(labels_text(UINT32_MAX), "");
	labels_clear(COROUTINE, 0);
	ck_assert_int_eq(set(COROUTINE, "some"), 0);
	ck_assert_uint_eq(find(COROUTINE + 16), 0);
	ck_assert_str_eq(labels_text(UINT32_MAX), "");
}
END_TEST

START_TEST(a_label_is_replaced_and_taken_away)
{
	uint32_t first;

	ck_assert_int_eq(set(COROUTINE, "first"), 0);
	first = find(COROUTINE);
	ASSERT_LABEL(COROUTINE, "first");
	ck_assert_int_eq(set(COROUTINE, "second"), 0);
	ASSERT_LABEL(COROUTINE, "second");
	ck_assert_int_eq(set(COROUTINE + 16, "first"), 0);
	ck_assert_uint_eq(find(COROUTINE + 16), first);
	labels_clear(COROUTINE, 0);
	ck_assert_uint_eq(find(COROUTINE), 0);
	ASSERT_LABEL(COROUTINE + 16, "first");
	ck_assert_str_eq(labels_text(first), "first");
}
END_TEST

/* The guard of a collected coroutine comes when another has its address. */
START_TEST(an_old_serial_takes_nothing_away)
{
	uint64_t old;
	uint64_t new;

	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, "old", 3, &old, NULL),
	                 0);
	labels_clear(COROUTINE, old);
	ck_assert_uint_eq(find(COROUTINE), 0);
	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, "old", 3, &old, NULL),
	                 0);
	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, "new", 3, &new, NULL),
	                 0);
	ck_assert_uint_ne(old, new);
	labels_clear(COROUTINE, old);
	ASSERT_LABEL(COROUTINE, "new");
	labels_clear(COROUTINE, new);
	ck_assert_uint_eq(find(COROUTINE), 0);
}
END_TEST

/* Which tells whether it is the same coroutine. */
START_TEST(a_label_has_its_witness)
{
	uint64_t serial, witness = 0;

	labels_set(COROUTINE, WITNESS, "old", 3, &serial, NULL);
	ck_assert_str_eq(labels_text(labels_find(COROUTINE, &witness)), "old");
	ck_assert_uint_eq(witness, WITNESS);
	labels_set(COROUTINE, WITNESS + 64, "new", 3, &serial, NULL);
	ck_assert_str_eq(labels_text(labels_find(COROUTINE, &witness)), "new");
	ck_assert_uint_eq(witness, WITNESS + 64);
	labels_set(COROUTINE + 16, WITNESS, "old", 3, &serial, NULL);
	labels_find(COROUTINE + 16, &witness);
	ck_assert_uint_eq(witness, WITNESS);
	labels_find(COROUTINE, &witness);
	ck_assert_uint_eq(witness, WITNESS + 64);
}
END_TEST

START_TEST(texts_are_cut)
{
	char text[LABEL_BYTES_MAX + 2];
	uint64_t serial;
	uint32_t label;

	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, text, sizeof(text),
	                            &serial, NULL),
	                 0);
	label = find(COROUTINE);
	ck_assert_uint_eq(strlen(labels_text(label)), LABEL_BYTES_MAX);
	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, text, LABEL_BYTES_MAX,
	                            &serial, NULL),
	                 0);
	ck_assert_uint_eq(find(COROUTINE), label);
	ck_assert_int_eq(labels_set(COROUTINE, WITNESS, text,
	                            LABEL_BYTES_MAX - 1, &serial, NULL),
	                 0);
	ck_assert_uint_ne(find(COROUTINE), label);
	ck_assert_int_eq(
		labels_set(COROUTINE, WITNESS, "a\0b", 3, &serial, NULL), 0);
	ASSERT_LABEL(COROUTINE, "a");
}
END_TEST

static void name_of(char text[16], uint32_t number)
{
	snprintf(text, 16, "label %u", number);
}

START_TEST(many_coroutines_keep_their_own)
{
	char text[16];

	for (uint32_t i = 0; i < COROUTINES_MAX; i++) {
		name_of(text, i % 1000);
		ck_assert_int_eq(set(address(i), text), 0);
	}
	for (uint32_t i = 0; i < COROUTINES_MAX; i += 3)
		labels_clear(address(i), 0);
	for (uint32_t i = 0; i < COROUTINES_MAX; i++) {
		name_of(text, i % 1000);
		ASSERT_LABEL(address(i), i % 3 ? text : "");
	}
	for (uint32_t i = 0; i < COROUTINES_MAX; i += 3)
		ck_assert_int_eq(set(address(i), "again"), 0);
	for (uint32_t i = 0; i < COROUTINES_MAX; i++) {
		name_of(text, i % 1000);
		ASSERT_LABEL(address(i), i % 3 ? text : "again");
	}
}
END_TEST

START_TEST(a_full_table_says_so_and_keeps_what_it_has)
{
	struct error error;
	uint64_t serial;

	for (uint32_t i = 0; i < COROUTINES_MAX; i++)
		ck_assert_int_eq(set(address(i), "one of many"), 0);
	ck_assert_int_ne(labels_set(address(COROUTINES_MAX), WITNESS, "x", 1,
	                            &serial, &error),
	                 0);
	ck_assert_int_eq(error.sys_errno, ENOSPC);
	ck_assert_str_eq(error.text,
	                 "more than 49152 coroutines have a label: take them "
	                 "away with label(nil)");
	ck_assert_uint_eq(find(address(COROUTINES_MAX)), 0);
	ck_assert_int_eq(set(address(7), "replaced"), 0);
	ASSERT_LABEL(address(7), "replaced");
	ASSERT_LABEL(address(8), "one of many");
}
END_TEST

/* What was taken away makes room for other addresses, all of it. */
START_TEST(a_table_that_was_full_can_be_filled_again)
{
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t first = round * COROUTINES_MAX;

		for (uint32_t i = 0; i < COROUTINES_MAX; i++)
			ck_assert_int_eq(set(address(first + i), "x"), 0);
		for (uint32_t i = 0; i < COROUTINES_MAX; i++)
			labels_clear(address(first + i), 0);
		for (uint32_t i = 0; i < COROUTINES_MAX; i++)
			ck_assert_uint_eq(find(address(first + i)), 0);
	}
}
END_TEST

/* A server: each request in a coroutine of its own, some thousand at once. */
START_TEST(coroutines_come_and_go_for_ever)
{
	const uint32_t living = 5000;

	for (uint32_t i = 0; i < 2000000; i++) {
		ck_assert_int_eq(set(address(i), "request"), 0);
		if (i >= living)
			labels_clear(address(i - living), 0);
	}
}
END_TEST

START_TEST(too_many_texts_are_refused)
{
	struct error error;
	uint64_t serial;
	char text[16];

	for (uint32_t i = 0; i < TEXTS_MAX; i++) {
		name_of(text, i);
		ck_assert_int_eq(set(COROUTINE, text), 0);
	}
	ck_assert_int_ne(
		labels_set(COROUTINE, WITNESS, "x", 1, &serial, &error), 0);
	ck_assert_int_eq(error.sys_errno, ENOSPC);
	ck_assert_str_eq(error.text,
	                 "more than 12288 different labels: leave out what "
	                 "differs from request to request");
	ASSERT_LABEL(COROUTINE, text);
	ck_assert_int_eq(set(COROUTINE, "label 0"), 0);
	ASSERT_LABEL(COROUTINE, "label 0");
}
END_TEST

/* ---- a reader beside ----------------------------------------------------- */

#define CROWD 64

static atomic_bool crowd_is_done;

/* Each coroutine has one label at times; returns how many others were seen. */
static void *look_on(void *unused)
{
	uintptr_t wrong_count = 0;
	char text[16];

	(void)unused;
	while (!atomic_load(&crowd_is_done))
		for (uint32_t i = 0; i < CROWD; i++) {
			uint32_t label = find(address(i));

			name_of(text, i);
			wrong_count +=
				label && strcmp(labels_text(label), text);
		}
	return (void *)wrong_count;
}

START_TEST(a_reader_never_sees_the_label_of_another)
{
	pthread_t reader;
	void *wrong_count;
	char text[16];

	ck_assert_int_eq(pthread_create(&reader, NULL, look_on, NULL), 0);
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t i = round * 7 % CROWD;

		name_of(text, i);
		ck_assert_int_eq(set(address(i), text), 0);
		labels_clear(address((i + 5) % CROWD), 0);
	}
	atomic_store(&crowd_is_done, true);
	ck_assert_int_eq(pthread_join(reader, &wrong_count), 0);
	ck_assert_ptr_null(wrong_count);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("labels");
	TCase *labels = tcase_create("labels");

	tcase_set_timeout(labels, 60);
	tcase_add_test(labels, nothing_has_a_label_at_first);
	tcase_add_test(labels, a_label_is_replaced_and_taken_away);
	tcase_add_test(labels, an_old_serial_takes_nothing_away);
	tcase_add_test(labels, a_label_has_its_witness);
	tcase_add_test(labels, texts_are_cut);
	tcase_add_test(labels, many_coroutines_keep_their_own);
	tcase_add_test(labels, a_full_table_says_so_and_keeps_what_it_has);
	tcase_add_test(labels, a_table_that_was_full_can_be_filled_again);
	tcase_add_test(labels, coroutines_come_and_go_for_ever);
	tcase_add_test(labels, too_many_texts_are_refused);
	tcase_add_test(labels, a_reader_never_sees_the_label_of_another);
	suite_add_tcase(suite, labels);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
