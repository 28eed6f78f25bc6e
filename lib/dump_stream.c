// SPDX-License-Identifier: MIT
/* Dump stream; see dump_stream.h. On the writer thread. */
#include "dump_stream.h"

#include "own_thread.h"

#define FLUSH_INTERVAL_NS UINT64_C(500000000)

bool dump_stream_flush(struct dump_stream *stream)
{
	stream->flushed_ns = clock_ns(CLOCK_MONOTONIC);
	if (stream->failed || sysprof_encoder_flush(&stream->encoder))
		return true;
	stream->failed = true;
	return false;
}

bool dump_stream_flush_is_due(const struct dump_stream *stream)
{
	if (!stream->failed && !sysprof_encoder_is_open(&stream->encoder))
		return true;
	return clock_ns(CLOCK_MONOTONIC) - stream->flushed_ns >=
	       FLUSH_INTERVAL_NS;
}

uint64_t dump_stream_write_lost(struct dump_stream *stream,
                                const uint64_t *lost, size_t reason_count)
{
	uint64_t sum = 0;

	for (size_t reason = 1; reason < reason_count; reason++) {
		sum += lost[reason];
		if (lost[reason] == stream->lost[reason])
			continue;
		stream->lost[reason] = lost[reason];
		sysprof_write_lost(&stream->encoder, (enum lost_reason)reason,
		                   lost[reason]);
	}
	return sum;
}
