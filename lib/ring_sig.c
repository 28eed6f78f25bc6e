// SPDX-License-Identifier: MIT
/*
 * Ring, the part that works: the producer is the signal handler of one thread,
 * the consumer the writer thread. Async-signal-safe as a whole.
 *
 * head and tail count bytes since ring_open() and never turn back; a position
 * in bytes[] is their remainder. Every record is a multiple of 8 bytes, so what
 * is left before the wrap always has room for the header of a padding record.
 *
 * Memory order: the release store of head publishes the bytes of a record to
 * the consumer's acquire load; the release store of tail gives them back to the
 * producer's acquire load, so that nothing is overwritten that is still read.
 * Each side loads its own counter relaxed: no other thread stores to it.
 */
#include "ring_sig.h"

#define RING_PADDING 0 /* kind of the record that fills up to the wrap */

static struct ring_record *record_at(const struct ring *ring, size_t position)
{
	return (void *)(ring->bytes + (position & (ring->capacity - 1)));
}

void *ring_reserve(struct ring *ring, size_t bytes)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	size_t to_wrap = ring->capacity - (head & (ring->capacity - 1));
	size_t padding = bytes > to_wrap ? to_wrap : 0;

	if (bytes > ring->capacity / 2 ||
	    bytes + padding > ring->capacity - (head - tail))
		return NULL;
	ring->reserved = padding;
	return record_at(ring, head + padding);
}

void ring_commit(struct ring *ring, const struct ring_record *record)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (ring->reserved > 0) {
		*record_at(ring, head) = (struct ring_record){
			.bytes = (uint32_t)ring->reserved,
			.kind = RING_PADDING,
		};
		head += ring->reserved;
		ring->reserved = 0;
	}
	atomic_store_explicit(&ring->head, head + record->bytes,
	                      memory_order_release);
}

const struct ring_record *ring_peek(struct ring *ring)
{
	size_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	const struct ring_record *record;

	if (head == tail)
		return NULL;
	record = record_at(ring, tail);
	if (record->kind != RING_PADDING)
		return record;
	/* Published together with the record behind it. Once it is released it
	 * may be overwritten, so it is read no more. */
	tail += record->bytes;
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
	return record_at(ring, tail);
}

void ring_release(struct ring *ring)
{
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	tail += record_at(ring, tail)->bytes;
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}
