// SPDX-License-Identifier: MIT
/*
 * Dump stream: what the streams of both profilers have in common. It is flushed
 * twice a second, ends for good when it fails, and tells what was lost. Belongs
 * to the writer thread of a profile.
 */
#ifndef LIB_DUMP_STREAM_H
#define LIB_DUMP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/sysprof_write.h"

/* Reasons of losses are numbers from 1 to below this, in both formats. */
#define DUMP_STREAM_REASONS_MAX 16

/* Zeroed at first. The owner opens the encoder, and lets nothing be written to
 * it once failed is set. */
struct dump_stream {
	struct sysprof_encoder encoder;
	bool failed;
	uint64_t flushed_ns;                    /* last, CLOCK_MONOTONIC */
	uint64_t lost[DUMP_STREAM_REASONS_MAX]; /* as last written */
};

/* Hands on what was written, whole records only. False if the stream has failed by
 * that, and not before. */
bool dump_stream_flush(struct dump_stream *stream);

/* Half a second after the last flush, or at once if a write failed on the way. */
bool dump_stream_flush_is_due(const struct dump_stream *stream);

/* Writes the counts that have changed; lost[0] is no reason. Returns their sum. */
uint64_t dump_stream_write_lost(struct dump_stream *stream,
                                const uint64_t *lost, size_t reason_count);

#endif
