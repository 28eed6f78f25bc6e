// SPDX-License-Identifier: MIT
/*
 * Sample writer: turns the records of samplers' rings into records of the
 * stream, and names for perf. Used by the writer thread of a session; looks
 * into files and allocates.
 */
#ifndef LIB_SAMPLE_WRITER_H
#define LIB_SAMPLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "perf_names.h"
#include "sample.h"
#include "stream/sysprof_write.h"
#include "vm/vm.h"

struct sample_writer; /* sample_writer.c */

struct sample_writer_options {
	struct sysprof_encoder *encoder; /* outlives the sample writer */
	bool host_frames;         /* the native records have their host part */
	struct perf_names *names; /* NULL: perf is off; outlives it, too */
	uint64_t fast_address;    /* as in struct sampler_options */
	uint64_t marker_address;  /* as in struct sampler_options */
};

/* NULL with the reason in *error. */
struct sample_writer *
sample_writer_open(const struct sample_writer_options *options,
                   struct error *error);
void sample_writer_close(struct sample_writer *samples);

/* At the head of the stream: library functions and markers are few, and all are
 * named. */
void sample_writer_head(struct sample_writer *samples,
                        const struct fast_names *fast_names);

/* Writes a record of a ring. */
void sample_writer_record(struct sample_writer *samples,
                          const struct ring_record *record);

/* Has a sample met code without unwind rules since this was asked last? */
bool sample_writer_rule_was_missing(struct sample_writer *samples);

#endif
