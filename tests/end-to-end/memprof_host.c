// SPDX-License-Identifier: MIT
/*
 * misc.memprof in a host of its own: what becomes of the VM's allocator, of its
 * errors, and of profiles in several VMs, threads and processes.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "lmisclib.h"

/* ---- an allocator that counts, and can run out ---------------------------------- */

struct heap {
	size_t held_bytes;
	size_t limit_bytes; /* 0: none */
	size_t call_count;
};

static void *heap_allocate(void *data, void *block, size_t old_bytes,
                           size_t new_bytes)
{
	struct heap *heap = data;
	void *result;

	heap->call_count++;
	if (new_bytes == 0) {
		heap->held_bytes -= block ? old_bytes : 0;
		free(block);
		return NULL;
	}
	if (heap->limit_bytes &&
	    heap->held_bytes - old_bytes + new_bytes > heap->limit_bytes)
		return NULL;
	result = realloc(block, new_bytes);
	if (!result)
		abort();
	heap->held_bytes += new_bytes - (block ? old_bytes : 0);
	return result;
}

static char directory[] = "/tmp/memprof-host-XXXXXX";

static void enter_directory(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
}

static void leave_directory(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	ck_assert_int_eq(system(command), 0);
}

/* Used on threads and in a child, where check's own assertions must not be. */
static lua_State *open_state(struct heap *heap)
{
	lua_State *L =
		heap ? lua_newstate(heap_allocate, heap) : luaL_newstate();

	if (!L)
		abort();
	luaL_openlibs(L);
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "preload");
	lua_pushcfunction(L, luaM_open_misc);
	lua_setfield(L, -2, "misc");
	lua_pop(L, 2);
	return L;
}

static void run(lua_State *L, const char *text)
{
	if (luaL_dostring(L, text) != 0)
		ck_abort_msg("%s: %s", text, lua_tostring(L, -1));
}

/* What a start or stop answers: text must be in its message. */
static void refuse(lua_State *L, const char *text, const char *call)
{
	char program[512];

	snprintf(program, sizeof(program),
	         "local ok, message, errno = %s\n"
	         "assert(ok == nil, 'not refused')\n"
	         "assert(message:find([[%s]], 1, true), message)\n"
	         "assert(type(errno) == 'number')",
	         call, text);
	run(L, program);
}

static bool ends_whole(const char *path)
{
	FILE *file = fopen(path, "rb");
	int last = -1;

	if (file == NULL)
		return false;
	if (fseek(file, -1, SEEK_END) == 0)
		last = fgetc(file);
	fclose(file);
	return last == 0x80;
}

static long size_of(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

#define REQUIRE "local memprof = require('misc').memprof "

/* ---- the allocator ----------------------------------------------------------------- */

START_TEST(allocator_comes_back)
{
	struct heap heap = {0};
	lua_State *L = open_state(&heap);
	void *data;

	run(L, REQUIRE "assert(memprof.available())");
	ck_assert_ptr_eq(lua_getallocf(L, &data), heap_allocate);
	run(L, REQUIRE "assert(memprof.start('a.bin'))");
	ck_assert_ptr_ne(lua_getallocf(L, &data), heap_allocate);
	ck_assert_ptr_ne(data, &heap);
	refuse(L, "running already",
	       "require('misc').memprof.start('other.bin')");
	ck_assert_int_eq(size_of("other.bin"), -1);
	run(L, REQUIRE "local t = {} for i = 1, 1000 do t[i] = {i} end "
	               "assert(memprof.stop())");
	ck_assert_ptr_eq(lua_getallocf(L, &data), heap_allocate);
	ck_assert_ptr_eq(data, &heap);
	ck_assert(ends_whole("a.bin"));
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

START_TEST(refused_start_changes_nothing)
{
	static const struct {
		const char *call, *text;
	} refused[] = {
		{"start(12)", "the path of the dump, or a table"},
		{"start(true)", "got true"},
		{"start{file = 'x'}", "the options are path, sample_bytes"},
		{"start{path = 12}", "path must be a string, got 12"},
		{"start{path = ''}", "path must be the name of a file"},
		{"start('a\\0b')", "without NUL bytes"},
		{"start{sample_bytes = 0}", "sample_bytes must be a number"},
		{"start{sample_bytes = 0/0}", "got nan"},
		{"start{sample_bytes = 'x'}", "got \"x\""},
		{"start{stacks = 1}", "stacks must be true or false"},
		{"start('/no/such/folder/x')",
	         "/no/such/folder/x: No such file or directory"},
		{"start('/dev/full')", "/dev/full: No space left on device"},
		{"start('.')", ".: Is a directory"},
		{"stop()", "not running"},
	};
	struct heap heap = {0};
	lua_State *L = open_state(&heap);
	char call[256];
	void *data;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		snprintf(call, sizeof(call), "require('misc').memprof.%s",
		         refused[i].call);
		refuse(L, refused[i].text, call);
		ck_assert_ptr_eq(lua_getallocf(L, &data), heap_allocate);
		ck_assert_ptr_eq(data, &heap);
	}
	run(L, REQUIRE "assert(memprof.start()) assert(memprof.stop())");
	ck_assert(ends_whole("memprof.bin"));
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

/* The VM's own allocator frees its memory as a whole only if it is in place. */
START_TEST(closing_the_vm_ends_the_profile)
{
	struct heap heap = {0};
	lua_State *L = open_state(&heap);

	run(L, REQUIRE "assert(memprof.start('a.bin')) "
	               "kept = {} for i = 1, 1000 do kept[i] = {i} end");
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
	ck_assert(ends_whole("a.bin"));

	long before_kb, after_kb;
	struct rusage usage;

	for (int i = 0; i < 60; i++) {
		if (i == 10) {
			getrusage(RUSAGE_SELF, &usage);
			before_kb = usage.ru_maxrss;
		}
		L = open_state(NULL);
		run(L,
		    REQUIRE "assert(memprof.start{path='b.bin', "
		            "sample_bytes=4096}) "
		            "kept = {} for i = 1, 20000 do kept[i] = {i} end");
		lua_close(L);
	}
	getrusage(RUSAGE_SELF, &usage);
	after_kb = usage.ru_maxrss;
	/* 50 arenas left behind would be 100 MB. */
	ck_assert_int_lt(after_kb - before_kb, 30 << 10);
}
END_TEST

START_TEST(out_of_memory_is_passed_on)
{
	struct heap heap = {0};
	lua_State *L = open_state(&heap);

	run(L, REQUIRE "assert(memprof.start('a.bin'))");
	heap.limit_bytes = heap.held_bytes + (1 << 20);
	ck_assert_int_ne(
		luaL_dostring(L, "local t = {} for i = 1, 1e7 do t[i] = {i} "
	                         "end"),
		0);
	ck_assert_str_eq(lua_tostring(L, -1), "not enough memory");
	lua_pop(L, 1);
	heap.limit_bytes = 0;
	run(L, REQUIRE "assert(memprof.stop())");
	ck_assert(ends_whole("a.bin"));
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

/* An allocator that somebody puts over ours goes on working, and so does the
 * one below. */
struct layer {
	lua_Alloc inner;
	void *data;
	size_t call_count;
};

static void *layer_allocate(void *data, void *block, size_t old_bytes,
                            size_t new_bytes)
{
	struct layer *layer = data;

	layer->call_count++;
	return layer->inner(layer->data, block, old_bytes, new_bytes);
}

START_TEST(an_allocator_over_ours_stays)
{
	struct heap heap = {0};
	struct layer layer = {0};
	lua_State *L = open_state(&heap);
	void *data;

	run(L, REQUIRE "assert(memprof.start('a.bin'))");
	layer.inner = lua_getallocf(L, &layer.data);
	lua_setallocf(L, layer_allocate, &layer);
	run(L, REQUIRE "assert(memprof.stop())");
	ck_assert_ptr_eq(lua_getallocf(L, &data), layer_allocate);
	layer.call_count = 0;
	run(L, "local t = {} for i = 1, 100 do t[i] = {i} end");
	ck_assert_uint_gt(layer.call_count, 0);
	ck_assert(ends_whole("a.bin"));
	run(L, REQUIRE "assert(memprof.start('b.bin')) assert(memprof.stop())");
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

/* ---- several profiles ----------------------------------------------------------- */

static void *profile_a_vm(void *path)
{
	lua_State *L = open_state(NULL);

	lua_pushstring(L, path);
	lua_setglobal(L, "path");
	run(L, REQUIRE "for i = 1, 5 do "
	               "assert(memprof.start{path = path, stacks = i > 3}) "
	               "local t = {} for j = 1, 20000 do t[j] = {j} end "
	               "assert(memprof.stop()) end");
	lua_close(L);
	return NULL;
}

START_TEST(vms_are_profiled_side_by_side)
{
	lua_State *a = open_state(NULL), *b = open_state(NULL);
	pthread_t threads[2];
	char paths[2][8] = {"t0.bin", "t1.bin"};

	run(a, REQUIRE "assert(memprof.start('a.bin'))");
	refuse(b, "another Lua VM", "require('misc').memprof.start('a.bin')");
	refuse(b, "not running", "require('misc').memprof.stop()");
	run(b, REQUIRE "assert(memprof.start('b.bin'))");
	run(a, REQUIRE "local t = {} for i = 1, 1000 do t[i] = {i} end "
	               "assert(memprof.stop())");
	run(b, REQUIRE "assert(memprof.stop())");
	ck_assert(ends_whole("a.bin"));
	ck_assert(ends_whole("b.bin"));
	ck_assert_int_gt(size_of("a.bin"), size_of("b.bin") + 8000);
	lua_close(a);
	lua_close(b);

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, profile_a_vm, paths[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		ck_assert(ends_whole(paths[i]));
	}
}
END_TEST

START_TEST(both_profilers_run_together)
{
	lua_State *L = open_state(NULL);

	run(L, "local misc = require 'misc' "
	       "assert(misc.memprof.start{path='m.bin', stacks=true}) "
	       "assert(misc.sysprof.start{mode='C', interval=0.1, "
	       "path='s.bin'}) "
	       "for i = 1, 10 do local t = {} "
	       "for j = 1, 20000 do t[j] = {j} end end "
	       "assert(misc.sysprof.stop()) assert(misc.memprof.stop())");
	ck_assert(ends_whole("m.bin"));
	ck_assert(ends_whole("s.bin"));
	lua_close(L);
}
END_TEST

/* ---- files and processes ----------------------------------------------------------- */

START_TEST(full_disk_is_told)
{
	struct rlimit limit = {1 << 20, 1 << 20};
	struct heap heap = {0};
	lua_State *L = open_state(&heap);
	void *data;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	run(L, REQUIRE "assert(memprof.start('a.bin')) "
	               "for i = 1, 300 do local t = {} "
	               "for j = 1, 1000 do t[j] = {j} end end");
	refuse(L, "a.bin: File too large", "require('misc').memprof.stop()");
	ck_assert_ptr_eq(lua_getallocf(L, &data), heap_allocate);
	refuse(L, "not running", "require('misc').memprof.stop()");
	run(L, REQUIRE "assert(memprof.start('b.bin')) assert(memprof.stop())");
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

/* As a daemon does: the profile goes on, and no file of the host is touched. */
START_TEST(closed_descriptors_do_no_harm)
{
	lua_State *L = open_state(NULL);
	FILE *file;

	run(L, REQUIRE "assert(memprof.start('a.bin'))");
	/* Not those of the test framework, which are the first ones. */
	for (int fd = 3; fd < 64; fd++) {
		char link[32], target[256];
		ssize_t bytes;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		bytes = readlink(link, target, sizeof(target) - 1);
		if (bytes > 5 && memcmp(target + bytes - 5, "a.bin", 5) == 0)
			close(fd);
	}
	file = fopen("host.txt", "w");
	ck_assert_ptr_nonnull(file);
	run(L, REQUIRE "local t = {} for i = 1, 1000 do t[i] = {i} end "
	               "assert(memprof.stop())");
	fputs("host", file);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(size_of("host.txt"), 4);
	ck_assert(ends_whole("a.bin"));
	lua_close(L);
}
END_TEST

static void run_child(lua_State *L)
{
	if (luaL_dostring(L, REQUIRE
	                  "local t = {} for i = 1, 1000 do t[i] = {i} end "
	                  "local ok, message = memprof.stop() "
	                  "assert(not ok and message:find 'not running') "
	                  "assert(memprof.start('child.bin')) "
	                  "for i = 1, 1000 do t[i] = {i} end "
	                  "assert(memprof.stop())") != 0) {
		fprintf(stderr, "child: %s\n", lua_tostring(L, -1));
		_exit(1);
	}
	lua_close(L);
	_exit(0);
}

START_TEST(child_of_a_fork_lets_go)
{
	struct heap heap = {0};
	lua_State *L = open_state(&heap);
	int status;
	pid_t child;

	run(L, REQUIRE "assert(memprof.start('a.bin'))");
	child = fork();
	if (child == 0)
		run_child(L);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert(ends_whole("child.bin"));
	run(L, REQUIRE "for i = 1, 1000 do local t = {i} end "
	               "assert(memprof.stop())");
	ck_assert(ends_whole("a.bin"));
	lua_close(L);
	ck_assert_uint_eq(heap.held_bytes, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("memprof_host");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, enter_directory, leave_directory);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, allocator_comes_back);
	tcase_add_test(tests, refused_start_changes_nothing);
	tcase_add_test(tests, closing_the_vm_ends_the_profile);
	tcase_add_test(tests, out_of_memory_is_passed_on);
	tcase_add_test(tests, an_allocator_over_ours_stays);
	tcase_add_test(tests, vms_are_profiled_side_by_side);
	tcase_add_test(tests, both_profilers_run_together);
	tcase_add_test(tests, full_disk_is_told);
	tcase_add_test(tests, closed_descriptors_do_no_harm);
	tcase_add_test(tests, child_of_a_fork_lets_go);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
