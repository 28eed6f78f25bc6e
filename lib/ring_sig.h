// SPDX-License-Identifier: MIT
/*
 * Ring: bytes from one signal handler (the producer) to the writer thread (the
 * consumer). No locks, no system calls, no allocation after ring_open().
 *
 * Async-signal-safe: all but ring_open() and ring_close().
 */
#ifndef LIB_RING_SIG_H
#define LIB_RING_SIG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "lmisclib.h"
#include "sample.h"

struct ring {
	uint8_t *bytes;      /* mapping of capacity bytes */
	size_t capacity;     /* power of two */
	_Atomic size_t head; /* total bytes committed by the producer */
	_Atomic size_t tail; /* total bytes released by the consumer */
	size_t reserved;     /* producer: bytes of padding before the reserved
	                      * record, see ring_reserve() */
};

/* capacity is rounded up to a power of two of whole pages. */
int ring_open(struct ring *ring, size_t capacity, struct error *error);
void ring_close(struct ring *ring);

/* Contiguous room for a record of at most bytes (half the capacity at most), or
 * NULL if there is none. The caller fills it and may commit fewer bytes. One
 * reservation at a time; the next one replaces a reservation that was not
 * committed. */
void *ring_reserve(struct ring *ring, size_t bytes);

/* Publishes the reserved record, whose record.bytes is set and a multiple
 * of 8. */
void ring_commit(struct ring *ring, const struct ring_record *record);

/* The oldest record, or NULL. Stays valid until ring_release(). */
const struct ring_record *ring_peek(struct ring *ring);
void ring_release(struct ring *ring);

#endif
