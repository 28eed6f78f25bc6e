// SPDX-License-Identifier: MIT
/*
 * Jitdump: exact bytes, and the safety of its file. What perf makes of it is
 * tested by end-to-end/perf-jitdump.sh.
 */
#include "perfmap/jitdump.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct jitdump dump;
static char directory[64];
static char path[128];
static uint8_t file[1 << 16];

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/test-jitdump-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/jit-%ld.dump", directory,
	         (long)getpid());
}

static void teardown(void)
{
	unlink(path);
	rmdir(directory);
}

static size_t read_file(void)
{
	FILE *stream = fopen(path, "r");
	size_t bytes;

	ck_assert_ptr_nonnull(stream);
	bytes = fread(file, 1, sizeof(file), stream);
	fclose(stream);
	return bytes;
}

static uint32_t u32(size_t offset)
{
	uint32_t value;

	memcpy(&value, file + offset, sizeof(value));
	return value;
}

static uint64_t u64(size_t offset)
{
	uint64_t value;

	memcpy(&value, file + offset, sizeof(value));
	return value;
}

static const struct jitdump_code plain = {
	.time_ns = 1234567890123,
	.thread_id = 77,
	.address = 0x7f0000001000,
	.bytes = 5,
	.contents = "\x90\x91\x92\x93\xc3",
	.name = "fib fib.lua:12",
	.name_bytes = 14,
};

/* Is a page of the file mapped, readable and executable? */
static bool marker_is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, path) && strstr(line, " r-xp 00000000 "))
			found = true;
	fclose(maps);
	return found;
}

START_TEST(header_is_exact)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	ck_assert_str_eq(dump.path, path);
	ck_assert_uint_eq(read_file(), 40);
	ck_assert_uint_eq(u32(0), 0x4a695444);
	ck_assert_uint_eq(u32(4), 1);
	ck_assert_uint_eq(u32(8), 40);
	ck_assert_uint_eq(u32(12), 62);
	ck_assert_uint_eq(u32(16), 0);
	ck_assert_uint_eq(u32(20), (uint32_t)getpid());
	ck_assert_uint_ge(u64(24), (uint64_t)before.tv_sec * 1000000000u);
	ck_assert_uint_le(u64(24), ((uint64_t)after.tv_sec + 1) * 1000000000u);
	ck_assert_uint_eq(u64(32), 0);
	ck_assert(marker_is_mapped());
	jitdump_close(&dump);
	ck_assert(!marker_is_mapped());
}
END_TEST

START_TEST(code_alone_is_one_record_without_padding)
{
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &plain), 0);
	ck_assert_uint_eq(read_file(), 40 + 56 + 15 + 5);
	ck_assert_uint_eq(u32(40), 0);
	ck_assert_uint_eq(u32(44), 56 + 15 + 5);
	ck_assert_uint_eq(u64(48), plain.time_ns);
	ck_assert_uint_eq(u32(56), (uint32_t)getpid());
	ck_assert_uint_eq(u32(60), 77);
	ck_assert_uint_eq(u64(64), plain.address);
	ck_assert_uint_eq(u64(72), plain.address);
	ck_assert_uint_eq(u64(80), 5);
	ck_assert_uint_eq(u64(88), 0);
	ck_assert_mem_eq(file + 96, "fib fib.lua:12\0\x90\x91\x92\x93\xc3", 20);
	jitdump_close(&dump);
}
END_TEST

START_TEST(indexes_are_unique)
{
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(jitdump_append(&dump, &plain), 0);
	ck_assert_uint_eq(read_file(), 40 + 3 * 76);
	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(u64(88 + 76 * i), i);
	jitdump_close(&dump);
}
END_TEST

START_TEST(lines_precede_code_and_end_with_it)
{
	const struct jitdump_line lines[] = {
		{plain.address, 12, "fib.lua"},
		{plain.address + 3, 14, "other.lua"},
	};
	struct jitdump_code code = plain;
	size_t at = 40;

	code.lines = lines;
	code.line_count = 2;
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &code), 0);
	ck_assert_uint_eq(read_file(), 40 + 32 + 24 + 26 + 26 + 76);
	ck_assert_uint_eq(u32(at), 2);
	ck_assert_uint_eq(u32(at + 4), 32 + 24 + 26 + 26);
	ck_assert_uint_eq(u64(at + 8), plain.time_ns);
	ck_assert_uint_eq(u64(at + 16), plain.address);
	ck_assert_uint_eq(u64(at + 24), 3);
	at += 32;
	ck_assert_uint_eq(u64(at), plain.address);
	ck_assert_uint_eq(u32(at + 8), 12);
	ck_assert_uint_eq(u32(at + 12), 0);
	ck_assert_str_eq((char *)file + at + 16, "fib.lua");
	at += 24;
	ck_assert_uint_eq(u64(at), plain.address + 3);
	ck_assert_uint_eq(u32(at + 8), 14);
	ck_assert_str_eq((char *)file + at + 16, "other.lua");
	at += 26;
	/* The name is written in full each time. */
	ck_assert_uint_eq(u64(at), plain.address + 5);
	ck_assert_uint_eq(u32(at + 8), 14);
	ck_assert_str_eq((char *)file + at + 16, "other.lua");
	ck_assert_uint_eq(u32(at + 26), 0);
	jitdump_close(&dump);
}
END_TEST

START_TEST(unwind_rules_are_frame_first_and_relative)
{
	const struct jitdump_saved saved[] = {{6, 2}};
	struct jitdump_code code = plain;
	const size_t data = 40 + 40;
	/* Behind the code, at the next multiple of 8. */
	const uint32_t eh_frame_start = 8;
	static const uint8_t cie[] =
		"\x18\0\0\0"       /* length */
		"\0\0\0\0"         /* a CIE */
		"\x01zR\0"         /* version, augmentation */
		"\x01\x78\x10"     /* alignments, return address */
		"\x01\x1b"         /* pointers are relative */
		"\x0c\x07\xe0\x01" /* CFA is rsp + 224 */
		"\x90\x01"         /* return address at CFA - 8 */
		"\x86\x02"         /* rbp at CFA - 16 */
		"\0\0\0";          /* padding; the third byte is C's */

	code.frame = (struct jitdump_frame){true, 224, saved, 1};
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &code), 0);
	ck_assert_uint_eq(read_file(), 40 + 40 + 72 + 76);
	ck_assert_uint_eq(u32(40), 4);
	ck_assert_uint_eq(u32(44), 40 + 72);
	ck_assert_uint_eq(u64(56), 28 + 20 + 20);
	ck_assert_uint_eq(u64(64), 20);
	ck_assert_uint_eq(u64(72), 28 + 20 + 20);
	ck_assert_mem_eq(file + data, cie, 28);
	ck_assert_uint_eq(u32(data + 28), 16);
	ck_assert_uint_eq(u32(data + 32), 32); /* back to the CIE */
	ck_assert_int_eq((int32_t)u32(data + 36), -36 - (int)eh_frame_start);
	ck_assert_uint_eq(u32(data + 40), 5);
	ck_assert_uint_eq(u32(data + 44), 0);
	ck_assert_uint_eq(u32(data + 48), 0x3b031b01);
	ck_assert_int_eq((int32_t)u32(data + 52), -52);
	ck_assert_uint_eq(u32(data + 56), 1);
	ck_assert_int_eq((int32_t)u32(data + 60), -48 - (int)eh_frame_start);
	ck_assert_int_eq((int32_t)u32(data + 64), 28 - 48);
	ck_assert_uint_eq(u32(data + 72), 0); /* the code record */
	jitdump_close(&dump);
}
END_TEST

START_TEST(file_is_ours_and_closes_on_exec)
{
	struct stat status;

	umask(0077);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(lstat(path, &status), 0);
	ck_assert(S_ISREG(status.st_mode));
	ck_assert_uint_eq(status.st_mode & 07777, 0644);
	ck_assert_uint_eq(status.st_uid, geteuid());
	ck_assert_int_ne(fcntl(dump.fd, F_GETFD) & FD_CLOEXEC, 0);
	jitdump_close(&dump);
	ck_assert_int_eq(jitdump_append(&dump, &plain), -EBADF);
	jitdump_close(&dump);
}
END_TEST

START_TEST(directories_that_do_not_fit)
{
	static char deep[JITDUMP_PATH_BYTES];

	ck_assert_int_eq(jitdump_open(&dump, "/nonexistent"), -ENOENT);
	ck_assert_int_eq(jitdump_append(&dump, &plain), -EBADF);
	memset(deep, 'x', sizeof(deep) - 1);
	ck_assert_int_eq(jitdump_open(&dump, deep), -ENAMETOOLONG);
	jitdump_close(&dump);
}
END_TEST

START_TEST(rules_without_room_are_not_mapped)
{
	struct jitdump_code code = plain;

	code.frame = (struct jitdump_frame){false, 224, NULL, 0};
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &code), 0);
	read_file();
	ck_assert_uint_eq(u32(40), 4);
	ck_assert_uint_gt(u64(56), 0);
	ck_assert_uint_eq(u64(72), 0);
	jitdump_close(&dump);
}
END_TEST

/* Room is what rules take behind the code, at most. */
START_TEST(room_is_enough)
{
	const struct jitdump_saved saved[] = {{6, 2}};
	struct jitdump_code code = plain;

	code.frame = (struct jitdump_frame){true, UINT16_MAX + 96u, saved, 1};
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &code), 0);
	read_file();
	ck_assert_uint_le(7 + u64(72), JITDUMP_ROOM_BYTES);
	jitdump_close(&dump);
}
END_TEST

/* In a child: the same code, from now on. */
static int inherit_in_child(uint64_t forked_ns)
{
	size_t at = 40 + 112;
	bool good;

	if (jitdump_inherit(&dump, directory) != 0 ||
	    jitdump_append(&dump, &plain) != 0)
		return 1;
	snprintf(path, sizeof(path), "%s/jit-%ld.dump", directory,
	         (long)getpid());
	good = read_file() == 40 + 112 + 3 * 76 &&
	       u32(20) == (uint32_t)getpid() && u64(48) > forked_ns;
	for (size_t i = 0; i < 3; i++, at += 76)
		good = good && u32(at) == 0 && u64(at + 48) == i &&
		       u32(at + 16) == (uint32_t)getpid();
	good = good && marker_is_mapped();
	unlink(path);
	return good ? 0 : 2;
}

START_TEST(child_has_the_code_of_its_parent)
{
	const struct jitdump_saved saved[] = {{6, 2}};
	struct jitdump_code code = plain;
	int status;
	pid_t child;

	code.frame = (struct jitdump_frame){true, 224, saved, 1};
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &code), 0);
	ck_assert_int_eq(jitdump_append(&dump, &plain), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(inherit_in_child(dump.opened_ns));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(read_file(), 40 + 112 + 2 * 76);
	ck_assert(marker_is_mapped());
	jitdump_close(&dump);
}
END_TEST

START_TEST(wrong_code_is_refused_and_harms_nothing)
{
	struct jitdump_code empty = plain;

	empty.bytes = 0;
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	ck_assert_int_eq(jitdump_append(&dump, &empty), -EINVAL);
	ck_assert_int_eq(jitdump_append(&dump, &plain), 0);
	ck_assert_uint_eq(read_file(), 40 + 76);
	jitdump_close(&dump);
}
END_TEST

START_TEST(full_disk_leaves_whole_groups)
{
	const struct rlimit limit = {40 + 2 * 76 + 30, RLIM_INFINITY};
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	int results[4];

	ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
	ck_assert_int_eq(jitdump_open(&dump, directory), 0);
	/* The limit holds for the notes of the test itself, too. */
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 4; i++)
		results[i] = jitdump_append(&dump, &plain);
	setrlimit(RLIMIT_FSIZE, &unlimited);
	ck_assert_int_eq(results[0], 0);
	ck_assert_int_eq(results[1], 0);
	ck_assert_int_eq(results[2], -EFBIG);
	ck_assert(dump.failed);
	ck_assert_int_eq(results[3], -EIO);
	ck_assert_uint_eq(read_file(), 40 + 2 * 76);
	jitdump_close(&dump);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jitdump");
	TCase *tests = tcase_create("jitdump");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, header_is_exact);
	tcase_add_test(tests, code_alone_is_one_record_without_padding);
	tcase_add_test(tests, indexes_are_unique);
	tcase_add_test(tests, lines_precede_code_and_end_with_it);
	tcase_add_test(tests, unwind_rules_are_frame_first_and_relative);
	tcase_add_test(tests, rules_without_room_are_not_mapped);
	tcase_add_test(tests, room_is_enough);
	tcase_add_test(tests, child_has_the_code_of_its_parent);
	tcase_add_test(tests, file_is_ours_and_closes_on_exec);
	tcase_add_test(tests, directories_that_do_not_fit);
	tcase_add_test(tests, wrong_code_is_refused_and_harms_nothing);
	tcase_add_test(tests, full_disk_leaves_whole_groups);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
