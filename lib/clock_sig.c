// SPDX-License-Identifier: MIT
/*
 * Sample clock, the part that the signal handler asks.
 */
#include "clock.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <stdatomic.h>

bool sample_clock_sent(const struct sample_clock *clock, const siginfo_t *info)
{
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		return (info->si_code == POLL_IN ||
		        info->si_code == POLL_HUP) &&
		       info->si_fd == clock->fd;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		return info->si_code == SI_TIMER &&
		       info->si_value.sival_ptr == clock;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		return info->si_code == SI_KERNEL;
	}
	return false;
}

/* ---- what the kernel tells ------------------------------------------------ */

/* Words of records as the clock asks for them; see perf_event_open(2). */
enum record_word {
	WORD_HEADER,
	/* PERF_RECORD_SAMPLE */
	WORD_TIME = 1,
	WORD_COUNT = 2,
	WORD_ADDRESSES = 3,
	/* PERF_RECORD_LOST */
	WORD_LOST = 2,
};

/* A record is a multiple of 8 bytes, so that a word never wraps. */
static uint64_t word_at(const struct perf_event_mmap_page *page,
                        uint64_t position, uint64_t number)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;

	position += number * sizeof(uint64_t);
	return *(const uint64_t *)(data + (position & (page->data_size - 1)));
}

/* Marks such as PERF_CONTEXT_KERNEL stand between addresses. */
static void read_addresses(const struct perf_event_mmap_page *page,
                           uint64_t position, uint64_t word_count,
                           struct kernel_stack *stack)
{
	uint64_t count = word_at(page, position, WORD_COUNT);

	if (count > word_count - WORD_ADDRESSES)
		count = word_count - WORD_ADDRESSES;
	for (uint64_t i = 0; i < count && stack->count < KERNEL_FRAMES_MAX;
	     i++) {
		uint64_t address = word_at(page, position, WORD_ADDRESSES + i);

		if (address >= PERF_CONTEXT_MAX)
			continue;
		if (stack->count > 0)
			address--;
		stack->frames[stack->count++] = address;
	}
}

/* True if it is an overflow. */
static bool read_record(const struct perf_event_mmap_page *page,
                        uint64_t position,
                        const struct perf_event_header *header,
                        struct kernel_stack *stack)
{
	uint64_t word_count = header->size / sizeof(uint64_t);

	if (header->type == PERF_RECORD_LOST && word_count > WORD_LOST)
		stack->lost += word_at(page, position, WORD_LOST);
	if (header->type != PERF_RECORD_SAMPLE || word_count < WORD_ADDRESSES)
		return false;
	stack->time_ns = word_at(page, position, WORD_TIME);
	read_addresses(page, position, word_count, stack);
	return true;
}

bool sample_clock_next_kernel(const struct sample_clock *clock,
                              struct kernel_stack *stack)
{
	struct perf_event_mmap_page *page = clock->kernel_ring;
	uint64_t head, position;
	bool found = false;

	stack->count = 0;
	stack->lost = 0;
	if (!page)
		return false;
	/* The kernel stores head behind the data, and looks at tail before it
	 * overwrites them. */
	head = atomic_load_explicit((_Atomic uint64_t *)&page->data_head,
	                            memory_order_acquire);
	position = page->data_tail;
	while (!found && position < head) {
		uint64_t word = word_at(page, position, WORD_HEADER);
		struct perf_event_header header;

		__builtin_memcpy(&header, &word, sizeof(header));
		if (header.size < sizeof(header))
			break;
		found = read_record(page, position, &header, stack);
		position += header.size;
	}
	stack->is_last = position >= head;
	atomic_store_explicit((_Atomic uint64_t *)&page->data_tail, position,
	                      memory_order_release);
	return found;
}
