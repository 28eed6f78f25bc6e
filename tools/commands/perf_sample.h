// SPDX-License-Identifier: MIT
/*
 * Fields of a PERF_RECORD_SAMPLE, which has a layout by its event's attribute.
 */
#ifndef COMMANDS_PERF_SAMPLE_H
#define COMMANDS_PERF_SAMPLE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_sample {
	uint64_t ip;
	uint32_t pid, thread_id;
	uint64_t time_ns;
	const uint64_t *chain; /* leaf first, with PERF_CONTEXT_* entries */
	uint64_t chain_count;
	const uint8_t *registers; /* of the user, NULL: none */
	uint64_t register_mask;   /* which: bits of PERF_REG_X86_* */
	/* The parts of the record's body, one behind the other: before the
	 * call chain, the chain with its count, what follows up to the user's
	 * registers, those with the stack, and the rest. */
	const uint8_t *before, *chain_part, *middle, *stack, *rest, *end;
};

/* Of which of the file's events is it? Reads the id, if there is one. */
struct perf_file;
size_t perf_sample_event(const struct perf_file *file,
                         const struct perf_event_header *record);

/* Can the samples of this event be read? Why not, else NULL. */
const char *perf_sample_refusal(const struct perf_event_attr *attribute);

/* A register of the user's, by its number in asm/perf_regs.h; false if it was not
 * recorded. */
bool perf_sample_register(const struct perf_sample *sample, unsigned number,
                          uint64_t *value);

/* False if the record is shorter than it says. */
bool perf_sample_read(struct perf_sample *sample,
                      const struct perf_event_attr *attribute,
                      const struct perf_event_header *record);

#endif
