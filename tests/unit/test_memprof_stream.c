// SPDX-License-Identifier: MIT
/*
 * Memory profiles, written by the encoder and read back: exact bytes of every
 * event, balances, estimates, and dumps that were cut or damaged.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory_load.h"
#include "memory/memory_stacks.h"
#include "memory_fixture.h"
#include "output/memory_output.h"

static struct memory_dump dump;
static struct memory_profile memory;
static bool is_loaded;

static void setup(void)
{
	dump = (struct memory_dump){0};
	is_loaded = false;
}

static void unload(void)
{
	if (is_loaded)
		memory_close(&memory);
	is_loaded = false;
}

static void teardown(void)
{
	unload();
	memory_dump_free(&dump);
}

static void load_bytes(size_t count, const struct memory_options *options)
{
	/* fmemopen refuses a size of 0. */
	FILE *file = count > 0 ? fmemopen(dump.bytes, count, "rb")
	                       : fopen("/dev/null", "rb");

	ck_assert_ptr_nonnull(file);
	unload();
	memory_load(&memory, file, "test", options);
	fclose(file);
	is_loaded = true;
}

static void load(void)
{
	const struct memory_options options = {0};

	load_bytes(dump.count, &options);
}

/* The location of this name; fails if there is none. */
static const struct allocation_location *find(const char *name)
{
	char text[MEMORY_NAME_BYTES];

	for (uint32_t i = 1; i < memory.allocations.location_count; i++)
		if (strcmp(memory_location_name(&memory, i, text), name) == 0)
			return &memory.allocations.locations[i];
	ck_abort_msg("no location %s", name);
}

/* ---- exact bytes ------------------------------------------------------------------- */

START_TEST(events_have_their_bytes)
{
	static const char expected[] = "ljs\x03\0\0\0\x80"
				       "ljm\x03\0\0\0"
				       "\x05\x20\x30"
				       "\x09\x81\x01\x05\x20\x30"
				       "\x0d\x10\x20\x30"
				       "\x11\x07\x20\x30"
				       "\x06\x20\x30"
				       "\x0b\x01\x02\x20\x30\x40\xd0\x0f"
				       "\x80";
	static struct sysprof_encoder encoder;
	static uint8_t buffer[16];
	const struct memprof_event_fields events[] = {
		{MEMPROF_ALLOC, MEMPROF_INTERNAL, 9, 9, 9, 9, 0x20, 0x30},
		{MEMPROF_ALLOC, MEMPROF_LUA, 129, 5, 9, 9, 0x20, 0x30},
		{MEMPROF_ALLOC, MEMPROF_C, 0x10, 9, 9, 9, 0x20, 0x30},
		{MEMPROF_ALLOC, MEMPROF_TRACE, 7, 9, 9, 9, 0x20, 0x30},
		{MEMPROF_FREE, MEMPROF_INTERNAL, 9, 9, 0x20, 0x30, 9, 9},
		{MEMPROF_REALLOC, MEMPROF_LUA, 1, 2, 0x20, 0x30, 0x40, 2000},
	};

	memprof_encoder_open(&encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, &dump);
	sysprof_write_prologue(&encoder);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		memprof_write_event(&encoder, &events[i]);
	ck_assert(sysprof_write_end(&encoder));
	ck_assert_uint_eq(dump.count, sizeof(expected) - 1);
	ck_assert_mem_eq(dump.bytes, expected, dump.count);
}
END_TEST

/* ---- what is read ------------------------------------------------------------------ */

START_TEST(balances_stay_with_the_line_that_allocated)
{
	const struct allocation_location *make, *grow, *internal;

	memory_dump_write(&dump, 4096, 0);
	load();
	ck_assert(memory.complete);
	ck_assert_str_eq(memory.error, "");
	ck_assert_uint_eq(memory.allocations.event_count, MEMORY_DUMP_EVENTS);
	ck_assert_uint_eq(memory_lost_count(&memory), MEMORY_DUMP_LOST);
	ck_assert_uint_eq(memory.session.event_count, MEMORY_DUMP_EVENTS);
	ck_assert_uint_eq(memory.session.pid, 42);

	make = find("make a.lua:3 line 5");
	ck_assert_double_eq(make->events[SECTION_ALLOC].event_count, 3);
	ck_assert_double_eq(make->events[SECTION_ALLOC].alloc_bytes, 240);
	ck_assert_double_eq(make->balance.held_bytes, 340);
	ck_assert_double_eq(make->balance.alloc_count, 4);
	ck_assert_double_eq(make->balance.free_count, 2);
	grow = find("function a.lua:10 line 12");
	ck_assert_double_eq(grow->events[SECTION_REALLOC].alloc_bytes, 300);
	ck_assert_double_eq(grow->events[SECTION_REALLOC].free_bytes, 100);
	ck_assert_double_eq(grow->balance.held_bytes, 0);
	ck_assert_double_eq(find("c_make")->balance.held_bytes, 8);
	ck_assert_double_eq(find("TRACE_7 a.lua:4")->balance.held_bytes, 16);
	/* What was there before is never a negative balance. */
	internal = find("INTERNAL");
	ck_assert_double_eq(internal->balance.held_bytes, 20);
	ck_assert_double_eq(internal->events[SECTION_FREE].free_bytes, 600);
	ck_assert_double_eq(memory.allocations.before_count, 2);
	ck_assert_double_eq(memory.allocations.before_bytes, 510);
}
END_TEST

START_TEST(traces_are_told_apart_if_asked)
{
	const struct memory_options options = {.traces = true};

	memory_dump_write(&dump, 64, 0);
	load_bytes(dump.count, &options);
	ck_assert_double_eq(
		find("make a.lua:3 line 5")->events[SECTION_ALLOC].event_count,
		2);
	ck_assert_double_eq(find("make a.lua:3 line 5, TRACE_7")
	                            ->events[SECTION_ALLOC]
	                            .event_count,
	                    1);
}
END_TEST

START_TEST(compat_is_the_old_balance)
{
	const struct memory_options options = {.compat = true};
	const struct memory_output_options show = {.leak_only = true};
	char *text;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	memory_dump_write(&dump, 4096, 0);
	load_bytes(dump.count, &options);
	memory_output_compat(file, &memory, &show);
	fclose(file);
	ck_assert_str_eq(text, "HEAP SUMMARY:\n"
	                       "@a.lua:5 holds 340B: 4 allocs, 2 frees\n"
	                       "TRACE [7] started at @a.lua:4 holds 16B: 1 "
	                       "allocs, 0 frees\n"
	                       "c_make:0x400500 holds 8B: 1 allocs, 0 frees\n"
	                       "\n");
	free(text);
}
END_TEST

START_TEST(stacks_have_weights)
{
	struct profile stacks;

	memory_dump_write(&dump, 4096, 0);
	load();
	memory_stacks(&memory, WEIGHT_HELD_BYTES, &stacks);
	ck_assert_uint_eq(stacks.sample_count, 340 + 8 + 16 + 20);
	profile_close(&stacks);
	load();
	memory_stacks(&memory, WEIGHT_ALLOC_COUNT, &stacks);
	ck_assert_uint_eq(stacks.sample_count, 7);
	profile_close(&stacks);
}
END_TEST

/* Each sampled block stands for 1 / (1 - exp(-bytes / distance)). */
START_TEST(sampled_events_are_scaled)
{
	double weight = 1 / (1 - exp(-100.0 / 1000));

	memory_dump_write(&dump, 4096, 1000);
	load();
	ck_assert_double_eq_tol(
		find("make a.lua:3 line 5")->events[SECTION_ALLOC].event_count,
		2 * weight + 1 / (1 - exp(-0.04)), 1e-9);
	ck_assert_double_eq_tol(find("c_make")->balance.held_bytes,
	                        8 / (1 - exp(-0.008)), 1e-9);
}
END_TEST

/* Draws blocks as the recorder does; the estimate must come out right. */
START_TEST(estimates_are_unbiased)
{
	static const uint64_t sizes[] = {16, 40, 200, 5000, 100000};
	const uint64_t distance = 4096;
	struct allocations allocations = {.sample_bytes = distance};
	uint32_t location = allocations_location(&allocations, 1, 0, 0);
	double until = -log(drand48()) * (double)distance, bytes = 0, count = 0;
	struct dump_event event = {.event = MEMPROF_ALLOC,
	                           .source = MEMPROF_INTERNAL,
	                           .new_address = 16};

	srand48(1);
	for (int i = 0; i < 2000000; i++) {
		event.new_bytes = sizes[lrand48() % (i % 100 ? 3 : 5)];
		event.new_address += 16;
		bytes += (double)event.new_bytes;
		count++;
		until -= (double)event.new_bytes;
		if (until >= 0)
			continue;
		until = -log(1 - drand48()) * (double)distance;
		allocations_count(&allocations, &event, location, 0, 0);
	}
	const struct allocation_location *at = &allocations.locations[location];
	ck_assert_uint_lt(allocations.event_count, 300000);
	ck_assert_double_eq_tol(at->balance.held_bytes / bytes, 1, 0.02);
	ck_assert_double_eq_tol(at->balance.alloc_count / count, 1, 0.05);
	allocations_free(&allocations);
}
END_TEST

START_TEST(live_blocks_survive_removals)
{
	struct blocks blocks = {0};
	struct block block = {.location = 1};

	for (uint64_t i = 1; i <= 20000; i++) {
		block.address = i * 16;
		block.bytes = i;
		blocks_add(&blocks, &block);
		if (i % 3 == 0)
			ck_assert(blocks_take(&blocks, i / 3 * 32, &block));
	}
	size_t count = blocks.count, found = 0;
	for (uint64_t i = 1; i <= 20000; i++)
		if (blocks_take(&blocks, i * 16, &block)) {
			ck_assert_uint_eq(block.bytes, i);
			found++;
		}
	ck_assert_uint_eq(found, count);
	ck_assert_uint_eq(blocks.count, 0);
	blocks_free(&blocks);
}
END_TEST

/* ---- damage ----------------------------------------------------------------------- */

START_TEST(every_cut_is_told)
{
	const struct memory_options options = {0};

	memory_dump_write(&dump, 4096, 0);
	for (size_t count = 0; count < dump.count; count++) {
		load_bytes(count, &options);
		ck_assert(!memory.complete);
		ck_assert_ptr_nonnull(strstr(memory.error, "test: at offset "));
	}
}
END_TEST

START_TEST(every_changed_byte_is_survived)
{
	const struct memory_options options[] = {{0}, {.compat = true}};

	memory_dump_write(&dump, 4096, 0);
	for (size_t i = 0; i < dump.count; i++) {
		uint8_t byte = dump.bytes[i];

		for (int bit = 0; bit < 8; bit++) {
			dump.bytes[i] = (uint8_t)(byte ^ 1 << bit);
			load_bytes(dump.count, &options[bit % 2]);
			ck_assert(memory.complete || memory.error[0] != '\0');
		}
		dump.bytes[i] = byte;
	}
}
END_TEST

START_TEST(hostile_lengths_cost_nothing)
{
	static const char *const hostile[] = {
		"ljs\x03\0\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"ljs\x03\0\0\0\x80ljm\x03\0\0\0"
		"\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xff\xff\xff\xff"
		"\xff\xff\x7f",
		"ljs\x03\0\0\0\x80ljm\x03\0\0\0\x08\x01\xff\xff\xff\xff\x7f",
	};
	static const size_t bytes[] = {18, 31, 22};
	const struct memory_options options = {0};

	for (size_t i = 0; i < 3; i++) {
		dump.bytes = malloc(bytes[i]);
		memcpy(dump.bytes, hostile[i], bytes[i]);
		load_bytes(bytes[i], &options);
		ck_assert(!memory.complete);
		ck_assert_ptr_nonnull(strstr(memory.error, "the input ends"));
		free(dump.bytes);
		dump.bytes = NULL;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memprof_stream");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, events_have_their_bytes);
	tcase_add_test(tests, balances_stay_with_the_line_that_allocated);
	tcase_add_test(tests, traces_are_told_apart_if_asked);
	tcase_add_test(tests, compat_is_the_old_balance);
	tcase_add_test(tests, stacks_have_weights);
	tcase_add_test(tests, sampled_events_are_scaled);
	tcase_add_test(tests, estimates_are_unbiased);
	tcase_add_test(tests, live_blocks_survive_removals);
	tcase_add_test(tests, every_cut_is_told);
	tcase_add_test(tests, every_changed_byte_is_survived);
	tcase_add_test(tests, hostile_lengths_cost_nothing);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
