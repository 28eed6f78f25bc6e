// SPDX-License-Identifier: MIT
/* Memory profiles for tests, made by our own encoder. */
#ifndef TESTS_MEMORY_FIXTURE_H
#define TESTS_MEMORY_FIXTURE_H

#include "dump_fixture.h"
#include "stream/memprof_write.h"

/* Every event, source and item there is, through a buffer of buffer_bytes (at
 * most 4096). sample_bytes 0: every event. */
void memory_dump_write(struct memory_dump *dump, size_t buffer_bytes,
                       uint64_t sample_bytes);

/* What is in it. */
#define MEMORY_DUMP_EVENTS 9
#define MEMORY_DUMP_LOST   3

#endif
