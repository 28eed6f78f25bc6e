// SPDX-License-Identifier: MIT
/*
 * Ring, its memory. Not for the signal handler: it maps.
 */
#include "ring_sig.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t round_to_power_of_two(size_t bytes)
{
	size_t rounded = (size_t)sysconf(_SC_PAGESIZE);

	while (rounded < bytes && rounded <= SIZE_MAX / 2)
		rounded *= 2;
	return rounded;
}

int ring_open(struct ring *ring, size_t capacity, struct error *error)
{
	size_t bytes = round_to_power_of_two(capacity);
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	memset(ring, 0, sizeof(*ring));
	if (map == MAP_FAILED)
		return error_set(error, PROFILE_ERRMEM, errno,
		                 "no memory for %zu bytes of samples: %s",
		                 bytes, strerror(errno));
	/* A child of fork(2) has no use for it, and need not copy it. */
	madvise(map, bytes, MADV_DONTFORK);
	ring->bytes = map;
	ring->capacity = bytes;
	return 0;
}

void ring_close(struct ring *ring)
{
	if (ring->bytes)
		munmap(ring->bytes, ring->capacity);
	memset(ring, 0, sizeof(*ring));
}
