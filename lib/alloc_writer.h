// SPDX-License-Identifier: MIT
/*
 * Allocation writer: the thread that turns the ring of an allocation recorder
 * into a memprof dump. It runs with signals blocked and never touches the VM.
 * When the stream fails it stops the recording, and alloc_writer_close() tells
 * why.
 */
#ifndef LIB_ALLOC_WRITER_H
#define LIB_ALLOC_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc_recorder.h"
#include "dump_file.h"
#include "error.h"
#include "vm/vm.h"

struct alloc_writer; /* alloc_writer.c */

struct alloc_writer_options {
	struct alloc_recorder *recorder; /* outlives the writer */
	struct dump_file *file;          /* the same; closed by the caller */
	/* Facts for the head of the stream, copied by alloc_writer_open(). */
	uint64_t sample_bytes;
	bool stacks;
	uint64_t vm_number;
	const char *vm_description;
	const struct fast_names *fast_names;
};

/* Starts the thread and waits until the head of the stream is written. NULL
 * with the reason in *error. */
struct alloc_writer *
alloc_writer_open(const struct alloc_writer_options *options,
                  struct error *error);

/* Writes what the ring still holds and the end of the stream, ends the thread
 * and frees the writer. Nothing may be recorded any more. The file knows
 * whether writing has failed. */
void alloc_writer_close(struct alloc_writer *writer);

#endif
