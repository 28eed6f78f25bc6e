// SPDX-License-Identifier: MIT
/* Sample clock: each kind ticks on the thread it was made for, at the pace
 * that the kernel keeps, and is silent after it was stopped; and what the kernel
 * tells of its own part is read as it was written. */
#include "clock.h"

#include <check.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct sample_clock clock_under_test;
static atomic_uint ticks_here;
static atomic_uint ticks_elsewhere;
static atomic_uint ticks_not_ours;
static pid_t sampled_thread;

static pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void count_tick(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (!sample_clock_sent(&clock_under_test, info))
		ticks_not_ours++;
	else if (thread_id() == sampled_thread)
		ticks_here++;
	else
		ticks_elsewhere++;
}

static void install_counter(void)
{
	struct sigaction action = {
		.sa_sigaction = count_tick,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};

	sigaction(SIGPROF, &action, NULL);
	ticks_here = ticks_elsewhere = ticks_not_ours = 0;
	sampled_thread = thread_id();
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t cpu_ns)
{
	uint64_t start_ns = thread_cpu_ns();

	while (thread_cpu_ns() - start_ns < cpu_ns)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static bool system_has_perf_clock(void)
{
	bool has = sample_clock_open(&clock_under_test, SAMPLE_CLOCK_PERF,
	                             thread_id(), MS, NULL) == 0 &&
	           clock_under_test.kind == SAMPLE_CLOCK_PERF;

	sample_clock_close(&clock_under_test);
	return has;
}

/* Opens a clock of exactly this kind. False: the system has none. */
static bool open_kind(enum sample_clock_kind kind, uint64_t interval_ns)
{
	struct error error;

	ck_assert_int_eq(sample_clock_open(&clock_under_test, kind, thread_id(),
	                                   interval_ns, &error),
	                 0);
	if (clock_under_test.kind == kind)
		return true;
	sample_clock_close(&clock_under_test);
	return false;
}

static void run_clock(uint64_t cpu_ns)
{
	struct error error;

	ck_assert_int_eq(sample_clock_start(&clock_under_test, &error), 0);
	burn(cpu_ns);
	sample_clock_stop(&clock_under_test);
}

static unsigned percent_of(uint64_t cpu_ns, uint64_t interval_ns)
{
	return (unsigned)(ticks_here * 100u * interval_ns / cpu_ns);
}

START_TEST(perf_clock_keeps_one_and_a_tenth_of_a_millisecond)
{
	static const uint64_t intervals_ns[] = {10 * MS, MS, MS / 10};
	static const unsigned percent_min[] = {90, 90, 80};

	install_counter();
	for (int i = 0; i < 3; i++) {
		ticks_here = 0;
		/* Skipped by name in main() where the system has none. */
		ck_assert(open_kind(SAMPLE_CLOCK_PERF, intervals_ns[i]));
		run_clock(500 * MS);
		ck_assert_uint_ge(percent_of(500 * MS, intervals_ns[i]),
		                  percent_min[i]);
		ck_assert_uint_le(percent_of(500 * MS, intervals_ns[i]), 110);
		sample_clock_close(&clock_under_test);
	}
	ck_assert_uint_eq(ticks_elsewhere, 0);
	ck_assert_uint_eq(ticks_not_ours, 0);
}
END_TEST

/* The kernel's tick may be as slow as 10 ms, so no more than that is asked. The
 * process timer counts whole ticks, on a busy machine some that were not ours.
 */
START_TEST(timers_tick_at_the_kernels_pace)
{
	static const enum sample_clock_kind kinds[] = {
		SAMPLE_CLOCK_THREAD_TIMER,
		SAMPLE_CLOCK_PROCESS_TIMER,
	};

	install_counter();
	for (int i = 0; i < 2; i++) {
		ticks_here = 0;
		ck_assert(open_kind(kinds[i], 10 * MS));
		run_clock(1000 * MS);
		ck_assert_uint_ge(percent_of(1000 * MS, 10 * MS), 45);
		ck_assert_uint_le(percent_of(1000 * MS, 10 * MS), 170);
		sample_clock_close(&clock_under_test);
	}
	ck_assert_uint_eq(ticks_not_ours, 0);
}
END_TEST

static void check_silence(enum sample_clock_kind kind)
{
	unsigned ticks;

	install_counter();
	if (!open_kind(kind, MS))
		return;
	burn(50 * MS);
	ck_assert_uint_eq(ticks_here, 0);
	run_clock(100 * MS);
	ck_assert_uint_gt(ticks_here, 0);
	sample_clock_close(&clock_under_test);
	signal(SIGPROF, SIG_IGN);
	install_counter();
	ticks = ticks_here;
	burn(100 * MS);
	ck_assert_uint_eq(ticks_here, ticks);
	ck_assert_uint_eq(ticks_not_ours, 0);
}

START_TEST(no_tick_before_start_and_none_after_stop)
{
	check_silence(SAMPLE_CLOCK_PERF);
	check_silence(SAMPLE_CLOCK_THREAD_TIMER);
	check_silence(SAMPLE_CLOCK_PROCESS_TIMER);
}
END_TEST

static void *burn_elsewhere(void *unused)
{
	(void)unused;
	burn(200 * MS);
	return NULL;
}

static void check_other_thread(enum sample_clock_kind kind)
{
	struct error error;
	pthread_t thread;

	install_counter();
	if (!open_kind(kind, MS))
		return;
	ck_assert_int_eq(sample_clock_start(&clock_under_test, &error), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, burn_elsewhere, NULL),
	                 0);
	pthread_join(thread, NULL);
	sample_clock_stop(&clock_under_test);
	sample_clock_close(&clock_under_test);
	ck_assert_uint_eq(ticks_elsewhere, 0);
	ck_assert_uint_le(ticks_here, 10);
}

START_TEST(thread_clocks_do_not_count_other_threads)
{
	check_other_thread(SAMPLE_CLOCK_PERF);
	check_other_thread(SAMPLE_CLOCK_THREAD_TIMER);
}
END_TEST

START_TEST(timer_of_the_host_is_put_back)
{
	struct itimerval mine = {.it_value = {.tv_sec = 1000}};
	struct itimerval left;

	install_counter();
	ck_assert_int_eq(setitimer(ITIMER_PROF, &mine, NULL), 0);
	ck_assert(open_kind(SAMPLE_CLOCK_PROCESS_TIMER, 10 * MS));
	run_clock(50 * MS);
	sample_clock_close(&clock_under_test);
	ck_assert_int_eq(getitimer(ITIMER_PROF, &left), 0);
	ck_assert_int_ge(left.it_value.tv_sec, 998);
}
END_TEST

START_TEST(names_tell_the_clock_that_is_used)
{
	ck_assert(open_kind(SAMPLE_CLOCK_THREAD_TIMER, MS));
	ck_assert_str_eq(sample_clock_name(&clock_under_test),
	                 "thread CPU timer");
	sample_clock_close(&clock_under_test);
	ck_assert(open_kind(SAMPLE_CLOCK_PROCESS_TIMER, MS));
	ck_assert_str_eq(sample_clock_name(&clock_under_test), "process timer");
	sample_clock_close(&clock_under_test);
	if (!open_kind(SAMPLE_CLOCK_PERF, MS))
		return;
	ck_assert_int_eq(strncmp(sample_clock_name(&clock_under_test),
	                         "perf task clock", 15),
	                 0);
	sample_clock_close(&clock_under_test);
}
END_TEST

/* A thread that is gone has no clock; the last way there is, the timer of the
 * whole process, does not need one. */
START_TEST(next_kind_is_tried_where_one_fails)
{
	struct error error;
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(0);
	waitpid(child, &status, 0);
	ck_assert_int_eq(sample_clock_open(&clock_under_test, SAMPLE_CLOCK_PERF,
	                                   child, MS, &error),
	                 0);
	ck_assert_int_eq(clock_under_test.kind, SAMPLE_CLOCK_PROCESS_TIMER);
	sample_clock_close(&clock_under_test);
}
END_TEST

/* The child lets go of the parent's clock, which goes on. */
START_TEST(child_of_a_fork_does_not_stop_the_parents_clock)
{
	struct error error;
	unsigned ticks;
	pid_t child;
	int status;

	install_counter();
	if (!open_kind(SAMPLE_CLOCK_PERF, MS))
		return;
	ck_assert_int_eq(sample_clock_start(&clock_under_test, &error), 0);
	child = fork();
	if (child == 0) {
		sample_clock_abandon(&clock_under_test);
		ticks = ticks_here;
		burn(50 * MS);
		_exit(ticks_here == ticks ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ticks = ticks_here;
	burn(50 * MS);
	ck_assert_uint_gt(ticks_here, ticks + 25);
	sample_clock_stop(&clock_under_test);
	sample_clock_close(&clock_under_test);
}
END_TEST

/* ---- what the kernel tells ------------------------------------------------ */

#define RING_DATA_BYTES 4096

/* As the kernel maps it: a page of its own, then the data. */
static union {
	struct perf_event_mmap_page page;
	uint8_t bytes[4096 + RING_DATA_BYTES];
} kernel_ring;

static void put_word(uint64_t word)
{
	uint64_t place = kernel_ring.page.data_head % RING_DATA_BYTES;

	memcpy(kernel_ring.bytes + 4096 + place, &word, sizeof(word));
	kernel_ring.page.data_head += sizeof(word);
}

static void put_header(uint32_t type, size_t word_count)
{
	struct perf_event_header header = {
		.type = type,
		.size = (uint16_t)(word_count * sizeof(uint64_t)),
	};
	uint64_t word;

	memcpy(&word, &header, sizeof(word));
	put_word(word);
}

static void put_overflow(uint64_t time_ns, const uint64_t *frames, size_t count)
{
	put_header(PERF_RECORD_SAMPLE, 3 + count);
	put_word(time_ns);
	put_word(count);
	for (size_t i = 0; i < count; i++)
		put_word(frames[i]);
}

static void open_kernel_ring(uint64_t position)
{
	memset(&kernel_ring, 0, sizeof(kernel_ring));
	kernel_ring.page.data_offset = 4096;
	kernel_ring.page.data_size = RING_DATA_BYTES;
	kernel_ring.page.data_head = kernel_ring.page.data_tail = position;
	clock_under_test = (struct sample_clock){
		.kind = SAMPLE_CLOCK_PERF,
		.kernel_ring = &kernel_ring,
	};
}

START_TEST(kernel_stacks_are_read_in_order)
{
	const uint64_t frames[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010,
	                           0xffffffff81000020};
	struct kernel_stack stack;

	/* The second one lies across the end of the data. */
	open_kernel_ring(RING_DATA_BYTES - 64);
	put_overflow(7, frames, 3);
	put_header(PERF_RECORD_LOST, 3);
	put_word(1);
	put_word(5);
	put_overflow(8, frames, 0);

	ck_assert(sample_clock_next_kernel(&clock_under_test, &stack));
	ck_assert_uint_eq(stack.time_ns, 7);
	ck_assert_uint_eq(stack.count, 2);
	ck_assert_uint_eq(stack.frames[0], frames[1]);
	ck_assert_uint_eq(stack.frames[1], frames[2] - 1);
	ck_assert_uint_eq(stack.lost, 0);
	ck_assert(!stack.is_last);
	ck_assert(sample_clock_next_kernel(&clock_under_test, &stack));
	ck_assert_uint_eq(stack.time_ns, 8);
	ck_assert_uint_eq(stack.count, 0);
	ck_assert_uint_eq(stack.lost, 5);
	ck_assert(stack.is_last);
	ck_assert(!sample_clock_next_kernel(&clock_under_test, &stack));
	ck_assert_uint_eq(kernel_ring.page.data_tail,
	                  kernel_ring.page.data_head);
}
END_TEST

START_TEST(kernel_stacks_are_no_longer_than_their_records)
{
	uint64_t frames[KERNEL_FRAMES_MAX + 9];
	struct kernel_stack stack;

	for (size_t i = 0; i < KERNEL_FRAMES_MAX + 9; i++)
		frames[i] = 0xffffffff81000000 + i;
	open_kernel_ring(0);
	put_overflow(1, frames, KERNEL_FRAMES_MAX + 9);
	ck_assert(sample_clock_next_kernel(&clock_under_test, &stack));
	ck_assert_uint_eq(stack.count, KERNEL_FRAMES_MAX);
	/* A count that lies, a record that is cut, one without a size. */
	put_header(PERF_RECORD_SAMPLE, 4);
	put_word(2);
	put_word(1000);
	put_word(frames[0]);
	put_header(PERF_RECORD_SAMPLE, 2);
	put_word(3);
	put_header(PERF_RECORD_SAMPLE, 0);
	ck_assert(sample_clock_next_kernel(&clock_under_test, &stack));
	ck_assert_uint_eq(stack.count, 1);
	ck_assert(!sample_clock_next_kernel(&clock_under_test, &stack));
	clock_under_test.kernel_ring = NULL;
	ck_assert(!sample_clock_next_kernel(&clock_under_test, &stack));
}
END_TEST

/* Real ones, of a call that takes long. */
START_TEST(the_kernel_tells_what_it_does)
{
	static struct kernel_stack stack;
	unsigned kernel_count = 0;
	struct error error;
	char *file;

	if (sample_clock_open_with_kernel(&clock_under_test, NULL, thread_id(),
	                                  MS, &error) < 0) {
		printf("the_kernel_tells_what_it_does: not run, %s\n",
		       error.text);
		return;
	}
	install_counter();
	ck_assert_int_eq(sample_clock_start(&clock_under_test, &error), 0);
	for (uint64_t start = thread_cpu_ns();
	     thread_cpu_ns() - start < 300 * MS;) {
		file = malloc(1 << 20);
		ck_assert_int_eq(getentropy(file, 256), 0);
		for (int i = 0; i < 4000; i++)
			getentropy(file + 256 * i, 256);
		free(file);
		while (sample_clock_next_kernel(&clock_under_test, &stack))
			kernel_count += stack.count > 2;
	}
	sample_clock_stop(&clock_under_test);
	sample_clock_close(&clock_under_test);
	/* Of 300; the thread sanitizer holds signals back. */
	ck_assert_uint_gt(kernel_count, 10);
	ck_assert_uint_gt(ticks_here, 10);
	ck_assert_ptr_null(clock_under_test.kernel_ring);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("clock");
	TCase *tests = tcase_create("clock");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60);
	if (system_has_perf_clock()) {
		tcase_add_test(
			tests,
			perf_clock_keeps_one_and_a_tenth_of_a_millisecond);
	} else {
		puts("perf_clock_keeps_one_and_a_tenth_of_a_millisecond: not "
		     "run, perf_event_open is not allowed here");
	}
	tcase_add_test(tests, timers_tick_at_the_kernels_pace);
	tcase_add_test(tests, no_tick_before_start_and_none_after_stop);
	tcase_add_test(tests, thread_clocks_do_not_count_other_threads);
	tcase_add_test(tests, timer_of_the_host_is_put_back);
	tcase_add_test(tests, names_tell_the_clock_that_is_used);
	tcase_add_test(tests, next_kind_is_tried_where_one_fails);
	tcase_add_test(tests, child_of_a_fork_does_not_stop_the_parents_clock);
	tcase_add_test(tests, kernel_stacks_are_read_in_order);
	tcase_add_test(tests, kernel_stacks_are_no_longer_than_their_records);
	tcase_add_test(tests, the_kernel_tells_what_it_does);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
