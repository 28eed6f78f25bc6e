// SPDX-License-Identifier: MIT
/*
 * Writer: the thread that turns the rings of samplers into a dump.
 *
 * One writer a session. Its thread does all I/O, all name lookups and all
 * calls of the host's writer callback; it runs with signals blocked and never
 * touches the VM. When the stream fails it stops the sampler, and
 * writer_close() tells why. With a rotation only a dump fails: a later one is
 * tried instead.
 */
#ifndef LIB_WRITER_H
#define LIB_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "lmisclib.h"
#include "perf_names.h"
#include "rotation.h"
#include "sampler_sig.h"
#include "vm/vm.h"

struct writer; /* writer.c */

/* The samplers of a session. Called on the writer's thread, and by writer_open()
 * and writer_close() before and after it. */
struct sample_sources {
	void *context;
	/* New ones may come; those that are at their end may go. */
	void (*refresh)(void *context);
	/* A thread whose interval is another one by now, 0: none. */
	uint32_t (*next_change)(void *context, uint64_t *interval_ns);
	/* Another dump begins, which knows of no change yet. */
	void (*begin_dump)(void *context);
	struct sampler *(*at)(void *context, size_t index); /* NULL: no more */
	void (*read_counters)(void *context, struct sampler_counters *counters);
	void (*disable)(void *context); /* the stream has failed */
};

struct writer_options {
	/* Whose rings are drained; outlive the writer. sampler is the only one
	 * where sources has no functions. */
	struct sampler *sampler;
	struct sample_sources sources;

	/* Facts for the head of the stream, copied by writer_open(). */
	uint8_t mode; /* LUAM_SYSPROF_LEAF or LUAM_SYSPROF_CALLGRAPH */
	uint64_t interval_ns;
	const char *clock_name;
	const char *vm_description;
	const struct fast_names *fast_names;

	/* Where the stream goes: to a file … */
	const char *path; /* NULL: to the callback; outlives the writer */
	int fd;           /* of that file, the caller's; 0: it is opened */
	struct rotation_options rotation; /* or to several, of names that begin
	                                   * with the path */
	/* … or through the host's buffer to its callback. */
	luam_Sysprof_writer callback;
	void *context;
	uint8_t *buffer;
	size_t buffer_bytes;

	/* Names for perf. */
	struct perf_names *names; /* NULL: perf is off; outlives the writer */
	uint64_t fast_address;    /* as in struct sampler_options */
	uint64_t marker_address;  /* as in struct sampler_options */
};

/* Opens the file, starts the thread and waits until the head of the stream is
 * written. The file is emptied no earlier than that. NULL with the reason in
 * *error. */
struct writer *writer_open(const struct writer_options *options,
                           struct error *error);

struct writer_facts {
	uint64_t held_bytes; /* of memory at most, the samplers' not counted */
	uint64_t dump_count; /* begun */
	uint64_t removed_count; /* of these: they took too much of the disk */
	/* Samples that a dump of a rotation could not take. */
	uint64_t unwritten_count;
};

/* Any thread. */
void writer_read_facts(const struct writer *writer, struct writer_facts *facts);

/* Writes what the ring still holds and the end of the stream, and ends the thread.
 * The sampler must have stopped. */
void writer_stop(struct writer *writer);

/* Stops and frees the writer. -1 with the reason in *error if the stream failed,
 * now or earlier. */
int writer_close(struct writer *writer, struct error *error);

/* As the last one, of a profile that does not come about: the file goes, too, unless
 * it was there before. */
void writer_discard(struct writer *writer);

/* Waits until what was sampled so far is written, but no longer than the disk is
 * expected to take: some 200 ms. Not on the writer's thread. */
void writer_flush(struct writer *writer);

/* The thread that the callback runs on. */
pthread_t writer_thread(const struct writer *writer);

/* In the child of a fork, where the thread does not exist: closes the file and
 * leaves the rest, which the thread may have been changing, alone. */
void writer_abandon(struct writer *writer);

#endif
