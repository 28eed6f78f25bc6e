// SPDX-License-Identifier: MIT
/* Address arena: what the mapping is, and that ranges never overlap. */
#include "perfmap/arena_sig.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define RANGES  5000

/* The line of /proc/self/maps that holds the address, and its Rss in KiB. */
static void read_mapping(uint64_t address, char *line, size_t line_bytes,
                         long *rss_kib)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char text[512];
	uint64_t start, end;
	int inside = 0;

	ck_assert_ptr_nonnull(file);
	line[0] = '\0';
	*rss_kib = -1;
	while (fgets(text, sizeof(text), file)) {
		if (sscanf(text, "%" SCNx64 "-%" SCNx64 " ", &start, &end) ==
		    2) {
			inside = address >= start && address < end;
			if (inside)
				snprintf(line, line_bytes, "%s", text);
		} else if (inside) {
			sscanf(text, "Rss: %ld", rss_kib);
		}
	}
	fclose(file);
}

START_TEST(region_is_executable_anonymous_and_takes_no_memory)
{
	struct address_arena arena;
	uint64_t start, end, offset, inode;
	char line[512], rights[8], device[16], path[256] = "";
	long rss_kib;

	ck_assert_int_eq(address_arena_open(&arena, ADDRESS_ARENA_BYTES), 0);
	for (int i = 0; i < 1000; i++)
		ck_assert_uint_ne(address_arena_reserve(&arena, 4096), 0);
	read_mapping(arena.base, line, sizeof(line), &rss_kib);
	ck_assert_int_ge(sscanf(line,
	                        "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64
	                        " %15s %" SCNu64 " %255s",
	                        &start, &end, rights, &offset, device, &inode,
	                        path),
	                 6);
	ck_assert_uint_le(start, arena.base);
	ck_assert_uint_ge(end, arena.end);
	ck_assert_str_eq(rights, "r-xp");
	ck_assert_uint_eq(inode, 0);
	ck_assert_str_eq(path, "");
	ck_assert_int_eq(rss_kib, 0);
	address_arena_close(&arena);
	ck_assert_uint_eq(address_arena_reserve(&arena, 1), 0);
}
END_TEST

START_TEST(two_arenas_lie_apart)
{
	struct address_arena first, second;

	ck_assert_int_eq(address_arena_open(&first, 1 << 20), 0);
	ck_assert_int_eq(address_arena_open(&second, 1 << 20), 0);
	ck_assert(first.end <= second.base || second.end <= first.base);
	address_arena_close(&first);
	address_arena_close(&second);
}
END_TEST

START_TEST(ranges_are_aligned_and_end_with_the_region)
{
	struct address_arena arena;
	uint64_t first, second;

	ck_assert_int_eq(address_arena_open(&arena, 4096), 0);
	ck_assert_uint_eq(arena.end - arena.base, 4096);
	first = address_arena_reserve(&arena, 17);
	second = address_arena_reserve(&arena, 0);
	ck_assert_uint_eq(first, arena.base);
	ck_assert_uint_eq(second, first + 32);
	ck_assert_uint_eq(address_arena_reserve(&arena, 4096), 0);
	ck_assert_uint_eq(address_arena_reserve(&arena, UINT32_MAX), 0);
	/* What did not fit has taken nothing. */
	ck_assert_uint_eq(address_arena_reserve(&arena, 4096 - 48),
	                  arena.base + 48);
	ck_assert_uint_eq(address_arena_reserve(&arena, 1), 0);
	address_arena_close(&arena);
}
END_TEST

START_TEST(wrong_sizes_are_refused)
{
	struct address_arena arena;

	ck_assert_int_eq(address_arena_open(&arena, 0), -EINVAL);
	ck_assert_int_eq(address_arena_open(&arena, SIZE_MAX), -EINVAL);
	ck_assert_int_eq(address_arena_open(&arena, SIZE_MAX / 2), -ENOMEM);
	ck_assert_uint_eq(address_arena_reserve(&arena, 1), 0);
	address_arena_close(&arena);
}
END_TEST

static struct address_arena shared_arena;

static void *reserve_many(void *starts)
{
	for (int i = 0; i < RANGES; i++)
		((uint64_t *)starts)[i] =
			address_arena_reserve(&shared_arena, 40);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

START_TEST(threads_get_ranges_of_their_own)
{
	static uint64_t starts[THREADS][RANGES];
	uint64_t *all = starts[0];
	pthread_t threads[THREADS];

	ck_assert_int_eq(address_arena_open(&shared_arena, 1 << 20), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, reserve_many,
		                                starts[i]),
		                 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	qsort(all, THREADS * RANGES, sizeof(*all), compare);
	for (int i = 0; i < THREADS * RANGES; i++)
		ck_assert_uint_eq(all[i],
		                  shared_arena.base + 48u * (unsigned)i);
	address_arena_close(&shared_arena);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("arena");
	TCase *tests = tcase_create("arena");
	SRunner *runner;
	int failed;

	tcase_add_test(tests,
	               region_is_executable_anonymous_and_takes_no_memory);
	tcase_add_test(tests, two_arenas_lie_apart);
	tcase_add_test(tests, ranges_are_aligned_and_end_with_the_region);
	tcase_add_test(tests, wrong_sizes_are_refused);
	tcase_add_test(tests, threads_get_ranges_of_their_own);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
