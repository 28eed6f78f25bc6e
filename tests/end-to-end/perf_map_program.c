// SPDX-License-Identifier: MIT
/*
 * Runs generated functions in memory of several kinds, each equally often, for
 * argv[1] seconds of CPU time, and prints "KIND NUMBER ADDRESS" for each. Writes
 * no map file: the test does. Needs nothing of LuaJIT.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "spin_code.h"

#define PAGE_BYTES   4096
#define FUNCTIONS    16 /* of each kind */
#define APART_BYTES  64
#define RIGHTS_WRITE (PROT_READ | PROT_WRITE)
#define RIGHTS_RUN   (PROT_READ | PROT_EXEC)

static uint8_t *map_pages(int rights, int fd)
{
	int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *pages = mmap(NULL, PAGE_BYTES, rights, flags, fd, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static uint8_t *make_memfd(void)
{
	int fd = memfd_create("code", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE_BYTES) != 0)
		return NULL;
	return map_pages(RIGHTS_WRITE | PROT_EXEC, fd);
}

/* A page of the heap. */
static uint8_t *make_heap(void)
{
	uintptr_t end = (uintptr_t)sbrk(2 * PAGE_BYTES);

	end = (end + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	return (uint8_t *)end;
}

static uint8_t *make_shared(void)
{
	void *pages = mmap(NULL, PAGE_BYTES, RIGHTS_WRITE | PROT_EXEC,
	                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

int main(int argc, char **argv)
{
	struct {
		const char *kind;
		uint8_t *code;
		int late_rights; /* what they become: 0: as they are */
	} areas[] = {
		{"anon", map_pages(RIGHTS_WRITE | PROT_EXEC, -1), 0},
		/* As LuaJIT's machine code. */
		{"protected", map_pages(RIGHTS_WRITE, -1), RIGHTS_RUN},
		{"heap", make_heap(), RIGHTS_WRITE | PROT_EXEC},
		{"shared", make_shared(), 0}, /* "/dev/zero" */
		{"memfd", make_memfd(), 0},
	};
	size_t area_count = sizeof(areas) / sizeof(areas[0]);
	double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;

	for (size_t i = 0; i < area_count; i++) {
		if (!areas[i].code)
			return EXIT_FAILURE;
		for (int j = 0; j < FUNCTIONS; j++) {
			uint8_t *code = areas[i].code + j * APART_BYTES;

			spin_generate(code, 8);
			printf("%s %d %lx\n", areas[i].kind, j,
			       (unsigned long)(uintptr_t)code);
		}
		if (areas[i].late_rights &&
		    mprotect(areas[i].code, PAGE_BYTES, areas[i].late_rights))
			return EXIT_FAILURE;
	}
	while ((double)clock() < seconds * CLOCKS_PER_SEC)
		for (size_t i = 0; i < area_count; i++)
			for (int j = 0; j < FUNCTIONS; j++)
				spin_call(areas[i].code + j * APART_BYTES);
	return EXIT_SUCCESS;
}
