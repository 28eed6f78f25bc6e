// SPDX-License-Identifier: MIT
/*
 * Host symbols: names and bounds of functions in this very process. The unwind
 * tables are played by the test, so that both answers can be had at will.
 */
#include "host/host_symbols.h"

#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/object_symbols.h"
#include "host/unwind_table.h"

/* Libraries that every Debian has. */
#define HELPER_LIBRARY  "libthread_db.so.1"
#define HELPER_FUNCTION "td_init"
#define OTHER_LIBRARY   "libcrypt.so.1"
#define OTHER_FUNCTION  "crypt_checksalt"

static uint64_t unwind_start, unwind_end;
static struct host_symbols *symbols;
static char directory[64], copy[96];

static uint64_t known_trampoline;

bool unwind_is_trampoline(uint64_t address)
{
	return address == known_trampoline;
}

bool unwind_find_function(uint64_t address, uint64_t *start, uint64_t *end)
{
	if (address < unwind_start || address >= unwind_end)
		return false;
	*start = unwind_start;
	*end = unwind_end;
	return true;
}

/*
 * Functions whose symbols are as we want them: sizes, gaps, aliases. Never
 * called. Each stands in a section of its own, lest one ends another.
 */
/* clang-format off */
__asm__(
	".pushsection .text.test_sized, \"ax\", %progbits\n"
	".globl sized_function\n"
	".type sized_function, %function\n"
	"sized_function: .skip 16\n"
	".size sized_function, 16\n"
	".globl sized_gap\n"
	"sized_gap: .skip 16\n"
	".popsection\n"

	".pushsection .text.test_unsized, \"ax\", %progbits\n"
	".globl unsized_function\n"
	".type unsized_function, %function\n"
	"unsized_function: .skip 32\n"
	".globl behind_unsized\n"
	".type behind_unsized, %function\n"
	"behind_unsized: .skip 8\n"
	".size behind_unsized, 8\n"
	".popsection\n"

	".pushsection .text.test_nested, \"ax\", %progbits\n"
	".globl outer_function\n"
	".type outer_function, %function\n"
	"outer_function: .skip 16\n"
	".type inner_function, %function\n"
	"inner_function: .skip 16\n"
	".size inner_function, 16\n"
	".skip 16\n"
	".size outer_function, 48\n"
	".popsection\n"

	".pushsection .text.test_aliases, \"ax\", %progbits\n"
	".type a_local_alias_with_a_long_name, %function\n"
	"a_local_alias_with_a_long_name:\n"
	".weak a_weak_alias_with_a_long_name\n"
	".type a_weak_alias_with_a_long_name, %function\n"
	"a_weak_alias_with_a_long_name:\n"
	".globl __global_alias_long\n"
	".type __global_alias_long, %function\n"
	"__global_alias_long:\n"
	".globl global_alias\n"
	".type global_alias, %function\n"
	"global_alias:\n"
	".globl global_ali\n"
	".type global_ali, %function\n"
	"global_ali: .skip 16\n"
	".size a_local_alias_with_a_long_name, 16\n"
	".size a_weak_alias_with_a_long_name, 16\n"
	".size __global_alias_long, 16\n"
	".size global_alias, 16\n"
	".size global_ali, 16\n"
	".popsection\n");
/* clang-format on */

extern const char sized_function[], sized_gap[], unsized_function[],
	behind_unsized[], outer_function[], global_alias[];

static void setup(void)
{
	symbols = host_symbols_open(NULL);
	ck_assert_ptr_nonnull(symbols);
	snprintf(directory, sizeof(directory), "/tmp/test-host-symbols-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(copy, sizeof(copy), "%s/libcopy.so.1", directory);
}

static void teardown(void)
{
	host_symbols_close(symbols);
	unlink(copy);
	rmdir(directory);
}

static uint64_t address_of(const void *code)
{
	return (uint64_t)(uintptr_t)code;
}

static void assert_symbol(uint64_t address, const char *name, uint64_t start,
                          uint64_t bytes)
{
	struct host_symbol symbol;

	host_symbols_find(symbols, address, &symbol);
	ck_assert_str_eq(symbol.name, name);
	ck_assert_uint_eq(symbol.start, start);
	ck_assert_uint_eq(symbol.end, start + bytes);
}

static void assert_name(uint64_t address, const char *name)
{
	struct host_symbol symbol;

	host_symbols_find(symbols, address, &symbol);
	ck_assert_str_eq(symbol.name, name);
	ck_assert_uint_le(symbol.start, address);
	ck_assert_uint_gt(symbol.end, address);
}

/* The loader's offset of the program: where its address 0 would be. */
static int read_base(struct dl_phdr_info *info, size_t bytes, void *base)
{
	(void)bytes;
	*(uint64_t *)base = info->dlpi_addr;
	return 1;
}

START_TEST(own_functions_are_named)
{
	assert_name(address_of((void *)setup), "setup");
	assert_name(address_of((void *)setup) + 1, "setup");
	assert_name(address_of((void *)teardown), "teardown");
}
END_TEST

START_TEST(size_is_respected)
{
	uint64_t start = address_of(sized_function);
	struct host_symbol symbol;

	assert_symbol(start, "sized_function", start, 16);
	assert_symbol(start + 15, "sized_function", start, 16);
	host_symbols_find(symbols, address_of(sized_gap), &symbol);
	ck_assert_str_eq(symbol.name, "[test_host_symbols]");
	ck_assert_uint_eq(symbol.start, address_of(sized_gap));
	ck_assert_uint_eq(symbol.end, address_of(sized_gap) + 1);
}
END_TEST

START_TEST(function_without_size_goes_to_the_next)
{
	uint64_t start = address_of(unsized_function);

	assert_symbol(start + 31, "unsized_function", start, 32);
	assert_symbol(start + 32, "behind_unsized", start + 32, 8);
}
END_TEST

START_TEST(innermost_function_wins)
{
	uint64_t start = address_of(outer_function);

	assert_symbol(start, "outer_function", start, 48);
	assert_symbol(start + 16, "inner_function", start + 16, 16);
	assert_symbol(start + 31, "inner_function", start + 16, 16);
	assert_symbol(start + 32, "outer_function", start, 48);
}
END_TEST

START_TEST(best_of_several_names_is_taken)
{
	assert_symbol(address_of(global_alias) + 3, "global_alias",
	              address_of(global_alias), 16);
}
END_TEST

START_TEST(unwind_tables_bound_what_has_no_symbol)
{
	uint64_t base = 0, start = address_of(sized_gap);
	char name[64];

	dl_iterate_phdr(read_base, &base);
	unwind_start = start;
	unwind_end = start + 16;
	snprintf(name, sizeof(name), "test_host_symbols+0x%" PRIx64,
	         start - base);
	assert_symbol(start + 5, name, start, 16);
	known_trampoline = start + 6;
	assert_symbol(start + 6, "__restore_rt", start + 6, 1);
	/* A symbol is better. */
	unwind_start = address_of(sized_function) - 64;
	assert_symbol(address_of(sized_function) + 1, "sized_function",
	              address_of(sized_function), 16);
}
END_TEST

START_TEST(addresses_of_no_object_are_unknown)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addresses[] = {address_of(code), address_of(&code), 0, 0x1000,
	                        UINT64_C(1) << 62};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
		assert_symbol(addresses[i], "[unknown]", addresses[i], 1);
}
END_TEST

/* The address of a kernel function, 0: it is hidden from this process. */
static uint64_t kernel_function(const char *wanted)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	uint64_t address = 0, found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%" SCNx64 " %*c %255s", &address, name) ==
		            2 &&
		    strcmp(name, wanted) == 0)
			found = address;
	if (file)
		fclose(file);
	return found;
}

START_TEST(the_kernel_is_named_as_far_as_it_tells)
{
	uint64_t function = kernel_function("vfs_read");
	struct host_symbol symbol;

	assert_symbol(UINT64_MAX - 1, "[kernel]", UINT64_MAX - 1, 1);
	assert_symbol(UINT64_C(1) << 63, "[kernel]", UINT64_C(1) << 63, 1);
	if (function == 0)
		return;
	host_symbols_find(symbols, function + 1, &symbol);
	ck_assert_str_eq(symbol.name, "vfs_read");
	ck_assert_uint_eq(symbol.start, function);
	ck_assert_uint_gt(host_symbols_held_bytes(symbols), 1 << 20);
}
END_TEST

START_TEST(libc_and_vdso_are_named)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	struct host_symbol symbol;

	assert_name(address_of(dlsym(libc, "qsort")) + 1, "qsort");
	ck_assert_ptr_nonnull(libc);
	ck_assert_ptr_nonnull(vdso);
	host_symbols_find(symbols,
	                  address_of(dlsym(vdso, "__vdso_clock_gettime")) + 1,
	                  &symbol);
	ck_assert_str_eq(symbol.name, "__vdso_clock_gettime");
}
END_TEST

static void copy_library(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command),
	         "cp \"$(ldconfig -p | sed -n "
	         "'s|.*%s (.*x86-64.* => ||p' | head -n 1)\" %s",
	         name, copy);
	if (system(command) != 0)
		ck_abort_msg("no copy of %s", name);
}

START_TEST(library_loaded_later_is_found)
{
	void *library;

	assert_name(address_of((void *)setup), "setup");
	library = dlopen(HELPER_LIBRARY, RTLD_LAZY);
	ck_assert_ptr_nonnull(library);
	assert_name(address_of(dlsym(library, HELPER_FUNCTION)),
	            HELPER_FUNCTION);
}
END_TEST

static bool may_follow_map_files(void)
{
	return access("/proc/self/map_files", X_OK) == 0 && geteuid() == 0;
}

START_TEST(replaced_file_gives_no_wrong_name)
{
	void *library;

	copy_library(HELPER_LIBRARY);
	library = dlopen(copy, RTLD_LAZY);
	ck_assert_ptr_nonnull(library);
	ck_assert_int_eq(unlink(copy), 0);
	copy_library(OTHER_LIBRARY);
	assert_name(address_of(dlsym(library, HELPER_FUNCTION)),
	            may_follow_map_files() ? HELPER_FUNCTION : "[libcopy]");
}
END_TEST

START_TEST(deleted_file_is_named_where_it_can_be_reached)
{
	void *library;

	copy_library(HELPER_LIBRARY);
	library = dlopen(copy, RTLD_LAZY);
	ck_assert_ptr_nonnull(library);
	ck_assert_int_eq(unlink(copy), 0);
	assert_name(address_of(dlsym(library, HELPER_FUNCTION)),
	            may_follow_map_files() ? HELPER_FUNCTION : "[libcopy]");
}
END_TEST

START_TEST(library_in_the_place_of_another_is_noticed)
{
	void *library;

	copy_library(OTHER_LIBRARY);
	library = dlopen(copy, RTLD_LAZY);
	ck_assert_ptr_nonnull(library);
	assert_name(address_of(dlsym(library, OTHER_FUNCTION)), OTHER_FUNCTION);
	dlclose(library);
	ck_assert_int_eq(unlink(copy), 0);
	copy_library(HELPER_LIBRARY);
	sleep(2);
	library = dlopen(copy, RTLD_LAZY);
	ck_assert_ptr_nonnull(library);
	assert_name(address_of(dlsym(library, HELPER_FUNCTION)),
	            HELPER_FUNCTION);
}
END_TEST

START_TEST(damaged_files_do_no_harm)
{
	static unsigned char bytes[1 << 17], damaged[1 << 17];
	struct object_symbols *object;
	struct object_symbol found;
	size_t length, read_count = 0;
	FILE *file;

	copy_library(HELPER_LIBRARY);
	file = fopen(copy, "r");
	length = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	ck_assert_uint_gt(length, 10000);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		memcpy(damaged, bytes, length);
		for (int j = 0; j < 1 + i % 20; j++)
			damaged[(size_t)rand() % (j % 2 ? length : 4096)] =
				(unsigned char)rand();
		object = object_symbols_read_image(
			damaged, i % 3 ? length : (size_t)rand() % length,
			1 << 20);
		if (!object)
			continue;
		read_count++;
		for (uint64_t at = 0; at < 0x8000; at += 0x100)
			if (object_symbols_find(object, at, &found))
				ck_assert_uint_ge(at, found.start);
		object_symbols_free(object);
	}
	ck_assert_uint_gt(read_count, 100);
}
END_TEST

START_TEST(table_over_the_limit_is_left_out)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct object_symbols *object = object_symbols_read(fd, 100);
	struct object_symbol found;
	uint64_t base = 0, address;

	dl_iterate_phdr(read_base, &base);
	ck_assert_ptr_nonnull(object);
	ck_assert_uint_eq(object_symbols_held_bytes(object), 0);
	address = address_of((void *)setup) - base;
	ck_assert(!object_symbols_find(object, address, &found));
	object_symbols_free(object);
	object = object_symbols_read(fd, 1 << 24);
	ck_assert_ptr_nonnull(object);
	ck_assert(object_symbols_find(object, address, &found));
	ck_assert_str_eq(found.name, "setup");
	object_symbols_free(object);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host_symbols");
	TCase *tests = tcase_create("host_symbols");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, own_functions_are_named);
	tcase_add_test(tests, size_is_respected);
	tcase_add_test(tests, function_without_size_goes_to_the_next);
	tcase_add_test(tests, innermost_function_wins);
	tcase_add_test(tests, best_of_several_names_is_taken);
	tcase_add_test(tests, unwind_tables_bound_what_has_no_symbol);
	tcase_add_test(tests, addresses_of_no_object_are_unknown);
	tcase_add_test(tests, the_kernel_is_named_as_far_as_it_tells);
	tcase_add_test(tests, libc_and_vdso_are_named);
	tcase_add_test(tests, library_loaded_later_is_found);
	tcase_add_test(tests, replaced_file_gives_no_wrong_name);
	tcase_add_test(tests, deleted_file_is_named_where_it_can_be_reached);
	tcase_add_test(tests, library_in_the_place_of_another_is_noticed);
	tcase_add_test(tests, damaged_files_do_no_harm);
	tcase_add_test(tests, table_over_the_limit_is_left_out);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
