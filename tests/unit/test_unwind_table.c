// SPDX-License-Identifier: MIT
/*
 * Unwind tables: objects that come and go, sets that are replaced under
 * readers, frame information that is broken, and the walk by the rules.
 */
#include "host/unwind_table.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "host/eh_frame.h"
#include "host/elf_image.h"
#include "host/mappings.h"
#include "host/own_memory.h"
#include "host/unwind_sig.h"
#include "load_sig.h"

#define LATE_LIBRARY "/tests/unit/.libs/late_library.so"

static char late_path[4096];

static void *open_late(void)
{
	void *library = dlopen(late_path, RTLD_NOW | RTLD_LOCAL);

	ck_assert_msg(library != NULL, "%s", dlerror());
	return library;
}

static uint64_t symbol_of(void *library, const char *name)
{
	return (uint64_t)dlsym(library, name);
}

static void refresh_all(void)
{
	struct error error;
	int result = unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error);

	ck_assert_msg(result == 0, "%s", result < 0 ? error.text : "left out");
}

static bool has_rule(uint64_t address)
{
	const struct unwind_rule *rule =
		unwind_find_rule(unwind_tables_enter(), address);
	bool found = rule && !(rule->flags & UNWIND_NO_RULE);

	unwind_tables_leave();
	return found;
}

START_TEST(functions_have_bounds_and_rules)
{
	uint64_t start, end, next_start, next_end;
	void *library = open_late();
	uint64_t spin = symbol_of(library, "late_spin");

	refresh_all();
	ck_assert(has_rule(spin));
	ck_assert(unwind_find_function(spin + 3, &start, &end));
	ck_assert_uint_eq(start, spin);
	ck_assert_uint_gt(end, spin + 3);
	ck_assert(unwind_find_function(symbol_of(library, "late_outer"),
	                               &next_start, &next_end));
	ck_assert_uint_ge(next_start, end);
	ck_assert(!unwind_find_function((uint64_t)&late_path, &start, &end));
	ck_assert(!unwind_find_function(0, &start, &end));
	dlclose(library);
}
END_TEST

START_TEST(objects_come_and_go)
{
	void *library;
	uint64_t spin;

	refresh_all();
	library = open_late();
	spin = symbol_of(library, "late_spin");
	ck_assert(!has_rule(spin));
	refresh_all();
	ck_assert(has_rule(spin));
	dlclose(library);
	refresh_all();
	ck_assert(!has_rule(spin));
}
END_TEST

START_TEST(nothing_is_decoded_twice)
{
	const struct unwind_tables *tables;
	uint64_t generation;
	void *library;

	refresh_all();
	tables = unwind_tables_enter();
	generation = tables->generation;
	unwind_tables_leave();
	refresh_all();
	ck_assert_ptr_eq(unwind_tables_enter(), tables);
	unwind_tables_leave();

	library = open_late();
	refresh_all();
	tables = unwind_tables_enter();
	ck_assert_uint_eq(tables->generation, generation + 1);
	unwind_tables_leave();
	dlclose(library);
}
END_TEST

START_TEST(loading_and_unloading_does_not_grow)
{
	size_t held_bytes = 0;
	int i;

	for (i = 0; i < 100; i++) {
		void *library = open_late();

		refresh_all();
		dlclose(library);
		refresh_all();
		if (i == 0)
			held_bytes = unwind_tables_held_bytes();
	}
	ck_assert_uint_gt(held_bytes, 10000);
	ck_assert_uint_eq(unwind_tables_held_bytes(), held_bytes);
}
END_TEST

START_TEST(a_reader_keeps_its_set)
{
	const struct unwind_tables *tables;
	size_t one_bytes, two_bytes;
	void *library = open_late();
	uint64_t spin = symbol_of(library, "late_spin");

	refresh_all();
	one_bytes = unwind_tables_held_bytes();
	tables = unwind_tables_enter();
	dlclose(library);
	refresh_all();
	/* Gone from the new set, still in the one that is being read. */
	ck_assert(!has_rule(spin));
	ck_assert(unwind_find_rule(tables, spin) != NULL);
	two_bytes = unwind_tables_held_bytes();
	ck_assert_uint_gt(two_bytes, one_bytes);
	unwind_tables_leave();
	refresh_all();
	ck_assert_uint_lt(unwind_tables_held_bytes(), one_bytes);
}
END_TEST

START_TEST(time_that_is_up_leaves_objects_for_the_next_time)
{
	uint64_t here = (uint64_t)&symbol_of;
	uint64_t elsewhere = (uint64_t)dlsym(RTLD_DEFAULT, "printf");
	struct error error;

	ck_assert_int_eq(unwind_tables_refresh(here, 0, &error), 1);
	ck_assert(has_rule(here));
	ck_assert(!has_rule(elsewhere));
	refresh_all();
	ck_assert(has_rule(elsewhere));
}
END_TEST

START_TEST(a_cache_forgets_rules_of_an_older_set)
{
	static struct unwind_cache cache;
	void *library = open_late();
	uint64_t spin = symbol_of(library, "late_spin");

	refresh_all();
	unwind_cache_begin(&cache);
	ck_assert(unwind_cache_find(&cache, spin) != NULL);
	unwind_cache_end(&cache);
	dlclose(library);
	refresh_all();
	unwind_cache_begin(&cache);
	ck_assert(unwind_cache_find(&cache, spin) == NULL);
	unwind_cache_end(&cache);
}
END_TEST

/* ---- readers and refreshes at the same time -------------------------------- */

static _Atomic bool ending;
static _Atomic uint64_t walk_count;

static void *read_all_the_time(void *argument)
{
	static const uint64_t steps[] = {0, 1, 5, 16, 100, 1000};
	struct unwind_cache *cache = calloc(1, sizeof(*cache));
	uint64_t address = *(const uint64_t *)argument;
	uint64_t start, end;
	size_t i;

	while (!atomic_load(&ending)) {
		unwind_cache_begin(cache);
		for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			const struct unwind_rule *rule =
				unwind_cache_find(cache, address + steps[i]);

			if (rule)
				ck_assert_uint_le(rule->cfa_register,
				                  SAVED_COUNT);
			unwind_find_function(address + steps[i], &start, &end);
		}
		unwind_cache_end(cache);
		atomic_fetch_add(&walk_count, 1);
	}
	free(cache);
	return NULL;
}

START_TEST(sets_are_replaced_under_readers)
{
	void *library = open_late();
	uint64_t spin = symbol_of(library, "late_spin");
	pthread_t readers[2];
	int i;

	refresh_all();
	for (i = 0; i < 2; i++)
		pthread_create(&readers[i], NULL, read_all_the_time, &spin);
	for (i = 0; i < 300; i++) {
		dlclose(library);
		refresh_all();
		library = open_late();
		refresh_all();
	}
	atomic_store(&ending, true);
	for (i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	ck_assert_uint_gt(walk_count, 1000);
	dlclose(library);
	refresh_all();
}
END_TEST

/* ---- broken frame information ---------------------------------------------- */

struct copies {
	struct memory_copy header, frames;
	uint64_t object_start;
};

static void copy(struct memory_copy *copy, uint64_t address, size_t count)
{
	uint8_t *bytes = malloc(count);

	ck_assert(own_memory_read(address, bytes, count));
	*copy = (struct memory_copy){address, bytes, count};
}

/* Of the late library, which is small. */
static void copy_late(struct copies *copies)
{
	void *library = open_late();
	uint64_t spin = symbol_of(library, "late_spin"), start, last;
	struct mappings mappings;
	struct elf_image image = {0};
	uint8_t head[4];
	size_t i;

	ck_assert_int_eq(mappings_read(&mappings), 0);
	for (i = 0; i < mappings.count; i++)
		if (elf_image_read(&mappings, &mappings.list[i], &image) &&
		    spin >= image.start && spin < image.end)
			break;
	ck_assert_uint_lt(i, mappings.count);
	mappings_free(&mappings);
	copy(&copies->header, image.frame_header, image.frame_header_bytes);
	ck_assert(eh_frame_locate(&copies->header, &start, &last));
	ck_assert(own_memory_read(last, head, sizeof(head)));
	copy(&copies->frames, start, last - start + eh_frame_entry_bytes(head));
	copies->object_start = image.start;
	dlclose(library);
}

static struct unwind_rows *decode_rows(const struct copies *copies)
{
	bool out_of_memory;
	uint64_t start, last;
	struct unwind_rows *rows;

	eh_frame_locate(&copies->header, &start, &last);
	rows = eh_frame_decode(&copies->header, &copies->frames,
	                       copies->object_start, &out_of_memory);
	ck_assert(!out_of_memory);
	return rows;
}

/* Whatever comes out can be searched. */
static void decode(const struct copies *copies)
{
	struct unwind_rows *rows = decode_rows(copies);
	size_t i;

	for (i = 0; rows && i < rows->count; i++) {
		ck_assert_uint_lt(rows->rule_numbers[i], rows->rule_count);
		ck_assert(!i || rows->ips[i] > rows->ips[i - 1]);
	}
	unwind_rows_free(rows);
}

static void free_copies(struct copies *copies)
{
	free((void *)copies->header.bytes);
	free((void *)copies->frames.bytes);
}

/* Has the address a rule by these copies? */
static bool rules_cover(const struct copies *copies, uint64_t address)
{
	struct unwind_rows *rows = decode_rows(copies);
	size_t i = rows->count;
	bool found;

	while (i && rows->ips[i - 1] > address - copies->object_start)
		i--;
	found = i && !(rows->rules[rows->rule_numbers[i - 1]].flags &
	               UNWIND_NO_RULE);
	unwind_rows_free(rows);
	return found;
}

/* The function before it must not seem to go on there. */
START_TEST(a_function_with_a_broken_entry_has_no_rule)
{
	struct copies copies;
	size_t offset = 0, function_count = 0;

	copy_late(&copies);
	while (offset + 12 <= copies.frames.count) {
		uint8_t *entry = (uint8_t *)copies.frames.bytes + offset;
		uint32_t bytes, cie, broken = INT32_MAX;
		int32_t start; /* from where it stands, as compilers have it */

		memcpy(&bytes, entry, 4);
		memcpy(&cie, entry + 4, 4);
		memcpy(&start, entry + 8, 4);
		if (cie) {
			uint64_t function = copies.frames.address + offset + 8 +
			                    (uint64_t)(int64_t)start;

			ck_assert(rules_cover(&copies, function));
			memcpy(entry + 4, &broken, 4);
			ck_assert(!rules_cover(&copies, function));
			memcpy(entry + 4, &cie, 4);
			function_count++;
		}
		offset += 4 + bytes;
	}
	ck_assert_uint_ge(function_count, 2);
	free_copies(&copies);
}
END_TEST

START_TEST(broken_frame_information_is_survived)
{
	struct copies copies;
	uint8_t *bytes;
	unsigned int random = 1;
	size_t i, place, round;

	copy_late(&copies);
	decode(&copies);
	for (round = 0; round < 20000; round++) {
		struct memory_copy *victim =
			round % 4 ? &copies.frames : &copies.header;
		uint8_t before;

		random = random * 1103515245u + 12345u;
		place = (random >> 8) % victim->count;
		bytes = (uint8_t *)victim->bytes;
		before = bytes[place];
		bytes[place] = (uint8_t)(random >> 3);
		decode(&copies);
		/* Some damage stays, so that it adds up. */
		if (round % 8)
			bytes[place] = before;
	}
	for (i = copies.frames.count; i-- > 0;) {
		copies.frames.count = i;
		decode(&copies);
	}
	for (i = copies.header.count; i-- > 0;) {
		copies.header.count = i;
		decode(&copies);
	}
	free_copies(&copies);
}
END_TEST

/* ---- the walk by the rules ------------------------------------------------- */

#define WALK_MAX 64

static struct walked {
	uint64_t addresses[WALK_MAX];
	size_t count, interrupted_count, guessed_count;
	enum unwind_result end;
} walked;

static void walk_from(const ucontext_t *context)
{
	static struct unwind_cache cache;
	struct cpu_registers registers;
	bool exact = true;

	memset(&walked, 0, sizeof(walked));
	cpu_registers_read(&registers, context);
	unwind_cache_begin(&cache);
	while (walked.count < WALK_MAX) {
		uint64_t address = exact ? registers.ip : registers.ip - 1;

		walked.addresses[walked.count++] = address;
		walked.end = unwind_step(unwind_cache_find(&cache, address),
		                         &registers);
		if (walked.end == UNWIND_NO_TABLE &&
		    (unwind_guess_by_frame_pointer(cache.tables, &registers,
		                                   exact, UINT64_MAX) ||
		     unwind_guess_by_scan(cache.tables, &registers,
		                          UINT64_MAX))) {
			walked.guessed_count++;
			walked.end = UNWIND_CALLER;
		}
		exact = walked.end == UNWIND_INTERRUPTED;
		walked.interrupted_count += exact;
		if (!exact && walked.end != UNWIND_CALLER)
			break;
	}
	unwind_cache_end(&cache);
}

static void handle_and_walk(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	walk_from(context);
}

static size_t place_of(uint64_t function)
{
	uint64_t start, end;
	size_t i;

	for (i = 0; i < walked.count; i++)
		if (unwind_find_function(walked.addresses[i], &start, &end) &&
		    start == function)
			return i;
	return WALK_MAX;
}

static uint64_t raise_user(uint64_t argument)
{
	raise(SIGUSR1);
	return argument;
}

static void catch_signal(int signal, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	action.sa_sigaction = handler;
	ck_assert_int_eq(sigaction(signal, &action, NULL), 0);
}

typedef uint64_t late_call(uint64_t (*function)(uint64_t), uint64_t argument);

START_TEST(a_walk_reaches_the_start_of_the_program)
{
	void *library = open_late();
	uint64_t call = symbol_of(library, "late_call");

	refresh_all();
	catch_signal(SIGUSR1, handle_and_walk);
	((late_call *)call)(raise_user, 1);
	ck_assert_int_eq(walked.end, UNWIND_END);
	ck_assert_uint_lt(place_of((uint64_t)raise_user), place_of(call));
	ck_assert_uint_lt(place_of(call), walked.count - 1);
	dlclose(library);
}
END_TEST

static uint64_t raise_other(uint64_t argument)
{
	raise(SIGUSR2);
	return argument;
}

/* The host's own signal handler, in which ours interrupts. */
static void handle_and_raise(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	raise_user(0);
	__asm__ volatile(""); /* no tail call: its frame is looked for */
}

START_TEST(a_walk_goes_through_a_signal_handler_of_the_host)
{
	void *library = open_late();
	uint64_t call = symbol_of(library, "late_call");
	size_t handler;

	refresh_all();
	catch_signal(SIGUSR1, handle_and_walk);
	catch_signal(SIGUSR2, handle_and_raise);
	((late_call *)call)(raise_other, 0);
	ck_assert_int_eq(walked.end, UNWIND_END);
	ck_assert_uint_eq(walked.interrupted_count, 1);
	handler = place_of((uint64_t)handle_and_raise);
	ck_assert_uint_lt(handler, place_of(call));
	dlclose(library);
}
END_TEST

/* Walks from raise_user(), which code without rules has called. */
static void walk_through_bare(const char *path, const char *name)
{
	char full[sizeof(late_path)];
	void *library;
	uint64_t call;

	memcpy(full, late_path, sizeof(full));
	strcpy(strrchr(full, '/') + 1, path);
	library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(library != NULL, "%s", dlerror());
	call = symbol_of(library, name);
	refresh_all();
	ck_assert(!has_rule(call));
	catch_signal(SIGUSR1, handle_and_walk);
	((late_call *)call)(raise_user, 1);
	ck_assert_uint_ge(walked.guessed_count, 1);
	ck_assert_uint_lt(place_of((uint64_t)raise_user), WALK_MAX);
	dlclose(library);
}

static void assert_caller_of_bare(void)
{
	ck_assert_uint_lt(place_of((uint64_t)raise_user),
	                  place_of((uint64_t)walk_through_bare));
	ck_assert_uint_lt(place_of((uint64_t)walk_through_bare), WALK_MAX);
}

START_TEST(a_walk_follows_frame_pointers_where_there_are_no_rules)
{
	walk_through_bare("bare_framed.so", "bare_framed");
	assert_caller_of_bare();
	ck_assert_int_eq(walked.end, UNWIND_END);
	ck_assert_uint_eq(walked.guessed_count, 1);
}
END_TEST

START_TEST(a_walk_scans_the_stack_where_there_is_nothing)
{
	walk_through_bare("bare_frameless.so", "bare_frameless");
	/* AddressSanitizer keeps addresses of code in each frame, which a scan
	 * takes for return addresses: the guess is one, but a wrong one. */
#ifndef __SANITIZE_ADDRESS__
	assert_caller_of_bare();
#endif
}
END_TEST

static void *raise_on_thread(void *argument)
{
	raise_user(0);
	return argument;
}

START_TEST(a_walk_reaches_the_start_of_a_thread)
{
	pthread_t thread;

	refresh_all();
	catch_signal(SIGUSR1, handle_and_walk);
	pthread_create(&thread, NULL, raise_on_thread, NULL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(walked.end, UNWIND_END);
	ck_assert_uint_lt(place_of((uint64_t)raise_on_thread),
	                  walked.count - 1);
}
END_TEST

static void start(void)
{
	struct error error;
	const char *directory = getenv("top_builddir");

	snprintf(late_path, sizeof(late_path), "%s" LATE_LIBRARY,
	         directory ? directory : ".");
	ck_assert_int_eq(load_faults_catch(&error), 0);
}

int main(void)
{
	Suite *suite = suite_create("unwind_table");
	TCase *tests = tcase_create("tables");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	tcase_add_checked_fixture(tests, start, load_faults_release);
	tcase_add_test(tests, functions_have_bounds_and_rules);
	tcase_add_test(tests, objects_come_and_go);
	tcase_add_test(tests, nothing_is_decoded_twice);
	tcase_add_test(tests, loading_and_unloading_does_not_grow);
	tcase_add_test(tests, a_reader_keeps_its_set);
	tcase_add_test(tests, time_that_is_up_leaves_objects_for_the_next_time);
	tcase_add_test(tests, a_cache_forgets_rules_of_an_older_set);
	tcase_add_test(tests, sets_are_replaced_under_readers);
	tcase_add_test(tests, broken_frame_information_is_survived);
	tcase_add_test(tests, a_function_with_a_broken_entry_has_no_rule);
	tcase_add_test(tests, a_walk_reaches_the_start_of_the_program);
	tcase_add_test(tests, a_walk_goes_through_a_signal_handler_of_the_host);
	tcase_add_test(tests, a_walk_reaches_the_start_of_a_thread);
	tcase_add_test(tests,
	               a_walk_follows_frame_pointers_where_there_are_no_rules);
	tcase_add_test(tests, a_walk_scans_the_stack_where_there_is_nothing);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
