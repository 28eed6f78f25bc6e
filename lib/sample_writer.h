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
	bool keeps_names;         /* there will be more than one dump */
};

/* NULL with the reason in *error. */
struct sample_writer *
sample_writer_open(const struct sample_writer_options *options,
                   struct error *error);
void sample_writer_close(struct sample_writer *samples);

/* Library functions and markers are few, and all are named for perf. Once. */
void sample_writer_map_names(struct sample_writer *samples,
                             const struct fast_names *fast_names);

/* At the head of a dump, the first one or another: it knows nothing yet. For
 * others keeps_names must have been set. */
void sample_writer_begin_dump(struct sample_writer *samples,
                              const struct fast_names *fast_names);

/* Samples in the dump so far. */
uint64_t sample_writer_count(const struct sample_writer *samples);

size_t sample_writer_held_bytes(const struct sample_writer *samples);

/* Writes a record of a ring. */
void sample_writer_record(struct sample_writer *samples,
                          const struct ring_record *record);

/* Has a sample met code without unwind rules since this was asked last? */
bool sample_writer_rule_was_missing(struct sample_writer *samples);

#endif
