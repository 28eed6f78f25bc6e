// SPDX-License-Identifier: MIT
/*
 * Map file: exact bytes, and that nothing in a shared /tmp can lead it astray.
 * Each test runs in a process of its own, so with a path of its own.
 */
#include "perfmap/mapfile.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mapfile map;
static char directory[64];
static char victim[96]; /* a file that must stay as it is */

static void map_path(char *path, size_t path_bytes)
{
	snprintf(path, path_bytes, "/tmp/perf-%ld.map", (long)getpid());
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	fclose(file);
}

static void assert_text(const char *path, const char *expected)
{
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
	size_t length;

	ck_assert_ptr_nonnull(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	ck_assert_uint_eq(length, strlen(expected));
	ck_assert_str_eq(text, expected);
}

static void append(uint64_t start, uint64_t bytes, const char *name)
{
	ck_assert_int_eq(mapfile_append(&map, start, bytes, name, strlen(name)),
	                 0);
}

/* A process that is gone may have left one of the same name. */
static void setup(void)
{
	char path[64];

	map_path(path, sizeof(path));
	unlink(path);
	snprintf(directory, sizeof(directory), "/tmp/test-mapfile-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(victim, sizeof(victim), "%s/victim", directory);
	write_text(victim, "precious\n");
}

static void teardown(void)
{
	char path[64];

	map_path(path, sizeof(path));
	unlink(path);
	unlink(victim);
	rmdir(directory);
}

START_TEST(lines_are_exact)
{
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_str_eq(map.path, path);
	append(0x7f0012345670, 0x10, "fib fib.lua:12");
	append(UINT64_MAX, UINT64_MAX, "top");
	append(0xABC, 1, "caf\xc3\xa9");
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "7f0012345670 10 fib fib.lua:12\n"
	                  "ffffffffffffffff ffffffffffffffff top\n"
	                  "abc 1 caf\xc3\xa9\n");
}
END_TEST

START_TEST(names_cannot_break_a_line)
{
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_int_eq(mapfile_append(&map, 1, 1, "a\nb\0c\x7f\r", 7), 0);
	append(2, 1, "f");
	append(3, 1, "");
	ck_assert_int_eq(mapfile_append(&map, 4, 0, "never", 5), -EINVAL);
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "1 1 a?b?c??\n2 1 f??\n3 1 ???\n");
}
END_TEST

START_TEST(many_and_long_lines_stay_whole)
{
	static char name[20000], text[1 << 16], expected[1 << 19];
	size_t length = 0, got;
	char path[64];
	FILE *file;

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	for (int i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "function_%d", i);
		append(0x1000u + 16u * (unsigned)i, 16, text);
		length += (size_t)sprintf(expected + length, "%x 10 %s\n",
		                          0x1000 + 16 * i, text);
	}
	ck_assert_int_eq(mapfile_flush(&map), 0);
	ck_assert_int_eq(mapfile_flush(&map), 0);
	file = fopen(path, "r");
	got = fread(name, 1, sizeof(name), file);
	ck_assert_uint_eq(got, sizeof(name));
	ck_assert_mem_eq(name, expected, sizeof(name));
	fseek(file, 0, SEEK_END);
	ck_assert_uint_eq((size_t)ftell(file), length);
	fclose(file);

	/* Longer than the buffer: cut, still one line. */
	memset(name, 'x', sizeof(name));
	ck_assert_int_eq(mapfile_append(&map, 5, 5, name, sizeof(name)), 0);
	append(6, 6, "after");
	ck_assert_int_eq(mapfile_close(&map), 0);
	file = fopen(path, "r");
	fseek(file, (long)length, SEEK_SET);
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	ck_assert_int_eq(strncmp(text, "5 5 xxxx", 8), 0);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
	ck_assert_str_eq(text, "6 6 after\n");
	fclose(file);
}
END_TEST

START_TEST(file_is_ours_and_readable_whatever_the_umask)
{
	struct stat status;

	umask(0077);
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_int_eq(lstat(map.path, &status), 0);
	ck_assert(S_ISREG(status.st_mode));
	ck_assert_uint_eq(status.st_mode & 07777, 0644);
	ck_assert_uint_eq(status.st_uid, geteuid());
	ck_assert_int_ne(fcntl(map.fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(mapfile_close(&map), 0);
	ck_assert_int_eq(mapfile_close(&map), -EBADF);
}
END_TEST

START_TEST(leftover_is_replaced)
{
	char path[64];

	map_path(path, sizeof(path));
	write_text(path, "1000 10 stale name of a dead process\n");
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x2000, 0x10, "fresh");
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "2000 10 fresh\n");
}
END_TEST

START_TEST(symbolic_link_is_not_followed)
{
	struct stat status;
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(symlink(victim, path), 0);
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x2000, 0x10, "fresh");
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(victim, "precious\n");
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISREG(status.st_mode));
}
END_TEST

START_TEST(dangling_link_creates_nothing_elsewhere)
{
	char path[64], target[96];

	map_path(path, sizeof(path));
	snprintf(target, sizeof(target), "%s/planted", directory);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_int_eq(mapfile_close(&map), 0);
	ck_assert_int_eq(access(target, F_OK), -1);
	assert_text(path, "");
}
END_TEST

START_TEST(hard_link_is_not_written_through)
{
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(link(victim, path), 0);
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x2000, 0x10, "fresh");
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(victim, "precious\n");
	assert_text(path, "2000 10 fresh\n");
}
END_TEST

START_TEST(fifo_does_not_block)
{
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mkfifo(path, 0666), 0);
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "");
}
END_TEST

START_TEST(directory_at_the_path_is_an_error)
{
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(mapfile_open(&map), 0);
	ck_assert_int_eq(mapfile_append(&map, 1, 1, "abc", 3), -EBADF);
	ck_assert_int_eq(mapfile_flush(&map), -EBADF);
	ck_assert_int_eq(mapfile_close(&map), -EBADF);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(full_disk_leaves_whole_lines)
{
	struct rlimit limit = {100, RLIM_INFINITY};
	char path[64], expected[128] = "";

	map_path(path, sizeof(path));
	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	ck_assert_int_eq(mapfile_open(&map), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (int i = 0; i < 20; i++)
		append(0x1000, 0x10, "12345678901234567890");
	ck_assert_int_eq(mapfile_flush(&map), -EFBIG);
	ck_assert(map.failed);
	/* It has given up: not even what would fit is written. */
	ck_assert_int_eq(mapfile_append(&map, 1, 1, "abc", 3), -EIO);
	ck_assert_int_eq(mapfile_close(&map), -EIO);
	for (int i = 0; i < 3; i++)
		strcat(expected, "1000 10 12345678901234567890\n");
	assert_text(path, expected);
}
END_TEST

START_TEST(lines_are_taken_out)
{
	const struct mapfile_range ranges[] = {
		{0x1008, 1},    /* inside of the second */
		{0x2ff0, 0x11}, /* the last byte of it is the first of 3000 */
		{0x5000, 0x10}, /* of nothing */
	};
	struct stat before, after;
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0xff0, 0x10, "stays: ends before");
	append(0x1000, 0x10, "goes");
	append(0x1010, 0x10, "stays: starts behind");
	append(0x3000, 0x10, "goes too");
	append(0x2fe0, 0x10, "stays, out of order");
	ck_assert_int_eq(mapfile_flush(&map), 0);
	ck_assert_int_eq(stat(path, &before), 0);
	ck_assert_int_eq(mapfile_remove(&map, ranges, 3), 0);
	append(0x1000, 0x10, "new");
	ck_assert_int_eq(mapfile_close(&map), 0);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_ne(before.st_ino, after.st_ino);
	assert_text(path, "ff0 10 stays: ends before\n"
	                  "1010 10 stays: starts behind\n"
	                  "2fe0 10 stays, out of order\n"
	                  "1000 10 new\n");
	strcat(path, ".new");
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(nothing_to_take_out_leaves_the_file)
{
	struct stat before, after;
	char path[64];

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x1000, 0x10, "stays");
	ck_assert_int_eq(stat(path, &before), 0);
	ck_assert_int_eq(mapfile_remove(&map, NULL, 0), 0);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "1000 10 stays\n");
}
END_TEST

START_TEST(child_has_the_lines_of_its_parent)
{
	char path[64], child_path[64];
	int status;
	pid_t child;

	map_path(path, sizeof(path));
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x1000, 0x10, "written");
	ck_assert_int_eq(mapfile_flush(&map), 0);
	append(0x2000, 0x10, "in the buffer");
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		int error = mapfile_inherit(&map);

		append(0x3000, 0x10, "of the child");
		_exit(error != 0 || mapfile_close(&map) != 0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "1000 10 written\n2000 10 in the buffer\n");
	snprintf(child_path, sizeof(child_path), "/tmp/perf-%ld.map",
	         (long)child);
	assert_text(child_path, "1000 10 written\n2000 10 in the buffer\n"
	                        "3000 10 of the child\n");
	unlink(child_path);
}
END_TEST

/* Runs as another user in a child, where the path is a file of root's. */
static int open_as(const struct passwd *user)
{
	if (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
		return 100;
	return mapfile_open(&map) < 0 && map.fd == -1 ? 0 : 1;
}

START_TEST(file_of_another_user_is_left_alone)
{
	const struct passwd *nobody = getpwnam("nobody");
	struct stat status;
	char path[64];
	int wait_status, go[2];
	pid_t child;

	ck_assert_ptr_nonnull(nobody);
	ck_assert_int_eq(stat("/tmp", &status), 0);
	ck_assert_uint_ne(status.st_mode & S_ISVTX, 0);
	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		char byte;

		(void)!read(go[0], &byte, 1);
		_exit(open_as(nobody));
	}
	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)child);
	write_text(path, "root's\n");
	ck_assert_int_eq(write(go[1], "x", 1), 1);
	ck_assert_int_eq(waitpid(child, &wait_status, 0), child);
	assert_text(path, "root's\n");
	unlink(path);
	ck_assert_int_eq(wait_status, 0);
}
END_TEST

START_TEST(root_replaces_a_file_of_another_user)
{
	const struct passwd *nobody = getpwnam("nobody");
	struct stat status;
	char path[64];

	ck_assert_ptr_nonnull(nobody);
	map_path(path, sizeof(path));
	write_text(path, "planted\n");
	ck_assert_int_eq(chown(path, nobody->pw_uid, nobody->pw_gid), 0);
	ck_assert_int_eq(mapfile_open(&map), 0);
	append(0x2000, 0x10, "fresh");
	ck_assert_int_eq(mapfile_close(&map), 0);
	assert_text(path, "2000 10 fresh\n");
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert_uint_eq(status.st_uid, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mapfile");
	TCase *tests = tcase_create("mapfile");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, lines_are_exact);
	tcase_add_test(tests, names_cannot_break_a_line);
	tcase_add_test(tests, many_and_long_lines_stay_whole);
	tcase_add_test(tests, file_is_ours_and_readable_whatever_the_umask);
	tcase_add_test(tests, leftover_is_replaced);
	tcase_add_test(tests, symbolic_link_is_not_followed);
	tcase_add_test(tests, dangling_link_creates_nothing_elsewhere);
	tcase_add_test(tests, hard_link_is_not_written_through);
	tcase_add_test(tests, fifo_does_not_block);
	tcase_add_test(tests, directory_at_the_path_is_an_error);
	tcase_add_test(tests, full_disk_leaves_whole_lines);
	tcase_add_test(tests, lines_are_taken_out);
	tcase_add_test(tests, nothing_to_take_out_leaves_the_file);
	tcase_add_test(tests, child_has_the_lines_of_its_parent);
	if (geteuid() == 0) {
		tcase_add_test(tests, file_of_another_user_is_left_alone);
		tcase_add_test(tests, root_replaces_a_file_of_another_user);
	} else {
		puts("not run: files of other users (needs root)");
	}
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
