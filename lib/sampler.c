// SPDX-License-Identifier: MIT
/*
 * Sampler: opening, closing and reading its counters. Ordinary code: it maps
 * the memory that the handler (sampler_sig.c) works on.
 */
#include "sampler_state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "load_sig.h"

/* Half a second of 10 kHz with deep stacks; the writer wakes far earlier. */
#define RING_BYTES (4u << 20)

/* perf reads 127 addresses unless it is asked for more. */
#define BEACON_ADDRESSES_MAX SAMPLE_FRAMES_MAX

static void *map_memory(size_t bytes, struct error *error)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	error_set(error, PROFILE_ERRMEM, errno,
	          "out of memory for the sampler: %s", strerror(errno));
	return NULL;
}

static size_t beacon_bytes(void)
{
	return sizeof(struct beacon_chain) +
	       BEACON_ADDRESSES_MAX * sizeof(struct beacon_link);
}

static int open_recording(struct sampler *sampler, struct error *error)
{
	const struct sampler_options *options = &sampler->options;

	if (options->mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	if (ring_open(&sampler->ring, RING_BYTES, error))
		return -1;
	sampler->symbols = lua_symbols_open(options->vm, &sampler->ring,
	                                    options->arena, error);
	if (!sampler->symbols)
		return -1;
	if (!options->arena)
		return 0;
	sampler->beacon = map_memory(beacon_bytes(), error);
	if (!sampler->beacon)
		return -1;
	sampler->beacon->capacity = BEACON_ADDRESSES_MAX;
	return 0;
}

struct sampler *sampler_open(const struct sampler_options *options,
                             struct error *error)
{
	struct sampler *sampler = map_memory(sizeof(*sampler), error);

	if (!sampler)
		return NULL;
	sampler->options = *options;
	sampler->thread_id = (uint32_t)gettid();
	if (load_faults_catch(error)) {
		munmap(sampler, sizeof(*sampler));
		return NULL;
	}
	if (open_recording(sampler, error)) {
		sampler_close(sampler);
		return NULL;
	}
	atomic_store(&sampler_foreign_count, 0);
	return sampler;
}

void sampler_attach(struct sampler *sampler)
{
	sampler_set_own(sampler);
}

void sampler_disable(struct sampler *sampler)
{
	atomic_store(&sampler->disabled, true);
}

/* Until a handler that is under way on the sampled thread has returned. */
static void wait_for_handler(struct sampler *sampler)
{
	static const struct timespec pause = {.tv_nsec = 10000};

	while (atomic_load(&sampler->in_handler))
		nanosleep(&pause, NULL);
}

void sampler_close(struct sampler *sampler)
{
	bool own_thread = sampler->thread_id == (uint32_t)gettid();

	sampler_disable(sampler);
	if (own_thread && sampler_own() == sampler)
		sampler_attach(NULL);
	if (!own_thread)
		wait_for_handler(sampler);
	if (sampler->beacon)
		munmap(sampler->beacon, beacon_bytes());
	lua_symbols_close(sampler->symbols);
	if (sampler->ring.bytes)
		ring_close(&sampler->ring);
	load_faults_release();
	/* Another thread's pointer to it cannot be taken away: it stays there,
	 * disabled, for a late signal to find. */
	if (own_thread)
		munmap(sampler, sizeof(*sampler));
}

struct ring *sampler_ring(struct sampler *sampler)
{
	return sampler->ring.bytes ? &sampler->ring : NULL;
}

void sampler_read_counters(const struct sampler *sampler,
                           struct sampler_counters *counters)
{
	size_t i;

	memset(counters, 0, sizeof(*counters));
	for (i = 0; i < STATE_COUNT; i++) {
		counters->by_state[i] = atomic_load_explicit(
			&sampler->by_state[i], memory_order_relaxed);
		counters->samples += counters->by_state[i];
	}
	for (i = 0; i < LOST_COUNT; i++)
		counters->lost[i] = atomic_load_explicit(&sampler->lost[i],
		                                         memory_order_relaxed);
	counters->lost[LOST_FOREIGN_THREAD] =
		atomic_load(&sampler_foreign_count);
	for (i = 0; i < MARKER_COUNT; i++)
		counters->markers[i] = atomic_load_explicit(
			&sampler->markers[i], memory_order_relaxed);
}
