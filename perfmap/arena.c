// SPDX-License-Identifier: MIT
/*
 * Address arena: its mapping. Never in the signal handler; there ranges are
 * reserved (arena_sig.c). Nothing may read or write the region: every touched
 * page would be memory for nothing.
 */
#include "perfmap/arena_sig.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Far from where programs, libraries and heaps are put. JIT compilers need
 * free address space near their library; the arena must not take it. Only a
 * wish: the kernel chooses another place where this one is not free.
 */
#define ARENA_HINT ((void *)0x200000000000)

int address_arena_open(struct address_arena *arena, size_t bytes)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *region;

	*arena = (struct address_arena){0};
	if (bytes == 0 || bytes > SIZE_MAX - page_bytes)
		return -EINVAL;
	bytes = (bytes + page_bytes - 1) & ~(page_bytes - 1);
	region = mmap(ARENA_HINT, bytes, PROT_READ | PROT_EXEC,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		return -errno;
	/* A dumper that reads every mapping would make it real memory. */
	(void)madvise(region, bytes, MADV_DONTDUMP);
	arena->base = (uint64_t)(uintptr_t)region;
	arena->end = arena->base + bytes;
	atomic_store_explicit(&arena->next, arena->base, memory_order_release);
	return 0;
}

void address_arena_close(struct address_arena *arena)
{
	if (arena->base != 0)
		munmap((void *)(uintptr_t)arena->base,
		       arena->end - arena->base);
	*arena = (struct address_arena){0};
}
