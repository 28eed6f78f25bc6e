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

/* perf reads 127 addresses unless it is asked for more. */
#define BEACON_ADDRESSES_MAX SAMPLE_FRAMES_MAX

static void *map_memory(size_t bytes, struct error *error)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A child of fork(2) has no use for it, and need not copy it. */
	if (memory != MAP_FAILED) {
		madvise(memory, bytes, MADV_DONTFORK);
		return memory;
	}
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
	if (ring_open(&sampler->ring,
	              options->ring_bytes ? options->ring_bytes
	                                  : SAMPLER_RING_BYTES,
	              error))
		return -1;
	sampler->symbols = lua_symbols_open(
		&sampler->ring, options->arena,
		options->last_symbol_id ? options->last_symbol_id
					: &sampler->own_last_symbol_id,
		error);
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
	sampler->thread_id =
		options->thread_id ? options->thread_id : (uint32_t)gettid();
	sampler->slot = -1;
	if (load_faults_catch(error)) {
		munmap(sampler, sizeof(*sampler));
		return NULL;
	}
	if (open_recording(sampler, error)) {
		sampler_close(sampler);
		return NULL;
	}
	return sampler;
}

int sampler_attach(struct sampler *sampler)
{
	for (int i = 0; i < SAMPLERS_MAX; i++) {
		struct sampler_slot *slot = &sampler_slots[i];
		uint32_t free = 0;
		int end = atomic_load(&sampler_slot_end);

		if (!atomic_compare_exchange_strong(&slot->thread_id, &free,
		                                    sampler->thread_id))
			continue;
		sampler->slot = i;
		atomic_store(&slot->sampler, sampler);
		while (end <= i && !atomic_compare_exchange_weak(
					   &sampler_slot_end, &end, i + 1))
			;
		return 0;
	}
	return -1;
}

void sampler_detach(struct sampler *sampler)
{
	static const struct timespec pause = {.tv_nsec = 10000};
	struct sampler_slot *slot;

	if (sampler->slot < 0)
		return;
	slot = &sampler_slots[sampler->slot];
	sampler->slot = -1;
	atomic_store(&slot->sampler, NULL);
	/* A handler of another thread that is under way returns soon. */
	while (atomic_load(&slot->user_count) > 0)
		nanosleep(&pause, NULL);
	atomic_store(&slot->thread_id, 0);
}

void sampler_detach_all(void)
{
	for (int i = 0; i < atomic_load(&sampler_slot_end); i++) {
		atomic_store(&sampler_slots[i].sampler, NULL);
		atomic_store(&sampler_slots[i].user_count, 0);
		atomic_store(&sampler_slots[i].thread_id, 0);
	}
	sampler_forget_thread();
}

void sampler_disable(struct sampler *sampler)
{
	atomic_store(&sampler->disabled, true);
}

void sampler_count_lost(struct sampler *sampler, enum lost_reason reason,
                        uint64_t number)
{
	atomic_fetch_add(&sampler->lost[reason], number);
}

void sampler_close(struct sampler *sampler)
{
	sampler_disable(sampler);
	sampler_detach(sampler);
	if (sampler->beacon)
		munmap(sampler->beacon, beacon_bytes());
	lua_symbols_close(sampler->symbols);
	if (sampler->ring.bytes)
		ring_close(&sampler->ring);
	load_faults_release();
	munmap(sampler, sizeof(*sampler));
}

size_t sampler_held_bytes(const struct sampler *sampler)
{
	size_t bytes = sizeof(*sampler) + sampler->ring.capacity;

	if (sampler->symbols)
		bytes += sizeof(*sampler->symbols);
	return sampler->beacon ? bytes + beacon_bytes() : bytes;
}

uint32_t sampler_thread_id(const struct sampler *sampler)
{
	return sampler->thread_id;
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
	counters->lost[LOST_FOREIGN_THREAD] = sampler_foreign_signals();
	for (i = 0; i < MARKER_COUNT; i++)
		counters->markers[i] = atomic_load_explicit(
			&sampler->markers[i], memory_order_relaxed);
}

uint64_t sampler_heard_count(const struct sampler *sampler)
{
	uint64_t count = 0;
	size_t i;

	for (i = 0; i < STATE_COUNT; i++)
		count += atomic_load_explicit(&sampler->by_state[i],
		                              memory_order_relaxed);
	for (i = 0; i < LOST_COUNT; i++)
		if (i != LOST_SIGNAL_REPLACED && i != LOST_SIGNAL_BLOCKED)
			count += atomic_load_explicit(&sampler->lost[i],
			                              memory_order_relaxed);
	return count;
}

uint64_t sampler_handler_ns(const struct sampler *sampler)
{
	return atomic_load_explicit(&sampler->handler_ns, memory_order_relaxed);
}

uint64_t sampler_foreign_signals(void)
{
	return atomic_load(&sampler_foreign_count);
}
