// SPDX-License-Identifier: MIT
/* Sample writer; see sample_writer.h. On the writer thread. */
#include "sample_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "labels_sig.h"
#include "lmisclib.h"
#include "symbol_writer.h"
#include "host/kernel_symbols.h"
#include "stream/call_tree.h"
#include "stream/frame_name.h"

#define RANGE_BYTES 16 /* of a library function, of a marker */

/* Coroutines whose label was said last, by address. */
#define LABEL_SLOTS 4096

struct said_label {
	uint64_t coroutine;
	uint32_t label;
};

struct sample_writer {
	struct sample_writer_options options;
	struct symbol_writer *symbols;
	struct call_tree tree;
	bool rule_missing; /* a sample met code without unwind rules */
	struct said_label labels[LABEL_SLOTS];
	uint64_t sample_count; /* in this dump */
	bool has_labels; /* some were said: coroutines without one matter */
	struct guest_entry guest[SAMPLE_FRAMES_MAX];
	uint64_t host[SAMPLE_FRAMES_MAX];
};

struct sample_writer *
sample_writer_open(const struct sample_writer_options *options,
                   struct error *error)
{
	struct sample_writer *samples = calloc(1, sizeof(*samples));

	if (!samples ||
	    !call_tree_open(&samples->tree, CALL_TREE_NODES_DEFAULT)) {
		free(samples);
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the call tree");
		return NULL;
	}
	samples->options = *options;
	samples->symbols = symbol_writer_open(options->encoder, error);
	if (!samples->symbols) {
		sample_writer_close(samples);
		return NULL;
	}
	if (options->keeps_names)
		symbol_writer_keep(samples->symbols);
	return samples;
}

void sample_writer_close(struct sample_writer *samples)
{
	if (!samples)
		return;
	symbol_writer_close(samples->symbols);
	call_tree_close(&samples->tree);
	free(samples);
}

/* ---- names for perf ------------------------------------------------------- */

static void map_name(struct sample_writer *samples, uint64_t address,
                     uint64_t bytes, const char *name, size_t name_bytes)
{
	if (samples->options.names && address != 0)
		perf_names_add_range(samples->options.names, address, bytes,
		                     name, name_bytes, NULL, 0);
}

static void map_lua_symbol(struct sample_writer *samples,
                           const struct lua_symbol *symbol,
                           const char *function, size_t function_bytes)
{
	char name[FRAME_NAME_BYTES], file[FRAME_NAME_BYTES];
	size_t bytes;

	if (!samples->options.names || symbol->arena_address == 0)
		return;
	bytes = frame_name_lua(name, symbol->chunk, symbol->chunk_bytes,
	                       symbol->first_line, function, function_bytes);
	frame_name_source(file, symbol->chunk, symbol->chunk_bytes);
	perf_names_add_range(samples->options.names, symbol->arena_address,
	                     (uint64_t)symbol->line_count + 2, name, bytes,
	                     file, symbol->first_line);
}

static void map_fast_functions(struct sample_writer *samples,
                               const struct fast_names *names)
{
	char safe[FRAME_NAME_BYTES];
	size_t bytes;

	for (uint32_t i = 0; i < names->count && i < FAST_FUNCTIONS_MAX; i++) {
		if (!names->name[i][0])
			continue;
		bytes = frame_name_native(safe, names->name[i],
		                          strlen(names->name[i]));
		map_name(samples,
		         samples->options.fast_address + i * RANGE_BYTES,
		         RANGE_BYTES, safe, bytes);
	}
}

static void map_markers(struct sample_writer *samples)
{
	char name[FRAME_NAME_BYTES];

	for (uint32_t i = 1; i < MARKER_COUNT; i++) {
		size_t bytes = frame_marker_name(name, i, 0);

		map_name(samples,
		         samples->options.marker_address + i * RANGE_BYTES,
		         RANGE_BYTES, name, bytes);
	}
}

void sample_writer_map_names(struct sample_writer *samples,
                             const struct fast_names *fast_names)
{
	if (!samples->options.names)
		return;
	map_fast_functions(samples, fast_names);
	map_markers(samples);
}

/* ---- the head of a dump ---------------------------------------------------- */

void sample_writer_begin_dump(struct sample_writer *samples,
                              const struct fast_names *fast_names)
{
	samples->sample_count = 0;
	memset(samples->labels, 0, sizeof(samples->labels));
	call_tree_reset(&samples->tree);
	symbol_writer_fast(samples->symbols, fast_names);
	symbol_writer_begin_dump(samples->symbols);
}

uint64_t sample_writer_count(const struct sample_writer *samples)
{
	return samples->sample_count;
}

size_t sample_writer_held_bytes(const struct sample_writer *samples)
{
	return sizeof(*samples) + call_tree_held_bytes(&samples->tree) +
	       symbol_writer_held_bytes(samples->symbols);
}

/* ---- samples ------------------------------------------------------------- */

/* Names precede the sample that needs them. */
static void write_symbols(struct sample_writer *samples,
                          const struct sample *sample)
{
	if (sample->state == STATE_TRACE)
		symbol_writer_find_lua(samples->symbols, sample->trace_symbol);
	for (size_t i = 0; i < sample->frame_count; i++) {
		const struct frame *frame = &sample->frames[i];

		if (frame->kind == FRAME_HOST || frame->kind == FRAME_C)
			symbol_writer_native(samples->symbols, frame->value);
		else if (frame->kind == FRAME_LUA)
			symbol_writer_find_lua(samples->symbols, frame->value);
	}
}

static uint32_t write_node(struct sample_writer *samples, uint32_t parent,
                           const struct stack_node *node)
{
	return sysprof_write_frame(samples->options.encoder, &samples->tree,
	                           parent, node);
}

/* Place of the innermost Lua function, if what the VM does for it is known; else
 * the count of frames. */
static size_t find_part_place(const struct sample *sample)
{
	size_t i = 0;

	while (i < sample->frame_count && sample->frames[i].kind == FRAME_HOST)
		i++;
	if (sample->vm_part == VM_PART_NONE || i == sample->frame_count ||
	    sample->frames[i].kind != FRAME_LUA)
		return sample->frame_count;
	return i;
}

static uint32_t write_stack(struct sample_writer *samples,
                            const struct sample *sample)
{
	const struct stack_node part = {
		.value = VM_PART_BASE + sample->vm_part,
		.kind = FRAME_FAST,
	};
	size_t part_place = find_part_place(sample);
	uint32_t node = 0;

	if (!call_tree_make_room(&samples->tree, samples->options.encoder,
	                         sample->frame_count + 1u))
		return 0;
	for (size_t i = sample->frame_count; i-- > 0;) {
		const struct frame *frame = &sample->frames[i];
		struct stack_node entry = {
			.value = frame->value,
			.line = frame->line,
			.kind = frame->kind,
			.flags = frame->flags,
		};

		node = write_node(samples, node, &entry);
		if (i == part_place)
			node = write_node(samples, node, &part);
	}
	return node;
}

/* Says which label the samples of the coroutine have from here on, unless that
 * was the last thing said. What the slot was taken from is said again then. */
static void write_label(struct sample_writer *samples,
                        const struct sample *sample)
{
	struct said_label *said =
		&samples->labels[(sample->coroutine >> 4) % LABEL_SLOTS];
	bool is_news = said->coroutine != sample->coroutine
	                       ? sample->label || samples->has_labels
	                       : said->label != sample->label;

	*said = (struct said_label){sample->coroutine, sample->label};
	if (!is_news)
		return;
	samples->has_labels = true;
	sysprof_write_label(samples->options.encoder, sample->coroutine,
	                    labels_text(sample->label));
}

static void write_sample_facts(struct sample_writer *samples,
                               const struct sample *sample)
{
	struct sample_facts facts = {
		.time_ns = sample->time_ns,
		.thread_id = sample->thread_id,
		.vm_number = sample->vm_number,
		.coroutine = sample->coroutine,
		.leaf_node = write_stack(samples, sample),
	};

	sysprof_write_sample_facts(samples->options.encoder, &facts);
}

/* False for frames that have no place in the guest part. */
static bool guest_entry_of(const struct sample_writer *samples,
                           const struct frame *frame, struct guest_entry *entry)
{
	struct lua_symbol_entry symbol;

	*entry = (struct guest_entry){.value = frame->value};
	switch (frame->kind) {
	case FRAME_LUA:
		symbol = symbol_writer_find_lua(samples->symbols, frame->value);
		entry->type = GUEST_LUA;
		entry->value = symbol.prototype;
		entry->first_line = symbol.first_line;
		return true;
	case FRAME_C:
		entry->type = GUEST_C;
		return true;
	case FRAME_FAST:
		entry->type = GUEST_FAST;
		return true;
	default:
		return false;
	}
}

static void write_stack_sample(struct sample_writer *samples,
                               const struct sample *sample)
{
	size_t guest_count = 0;
	size_t host_count = 0;

	for (size_t i = 0; i < sample->frame_count && i < SAMPLE_FRAMES_MAX;
	     i++) {
		const struct frame *frame = &sample->frames[i];

		if (guest_entry_of(samples, frame,
		                   &samples->guest[guest_count]))
			guest_count++;
		else if (frame->kind == FRAME_HOST &&
		         !is_kernel_address(frame->value) &&
		         samples->options.host_frames)
			samples->host[host_count++] = frame->value;
	}
	sysprof_write_sample(samples->options.encoder,
	                     (enum sample_state)sample->state, samples->guest,
	                     guest_count, samples->host, host_count);
}

static void note_missing_rule(struct sample_writer *samples,
                              const struct sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++)
		if (sample->frames[i].kind == FRAME_MARKER &&
		    sample->frames[i].value == MARKER_HOST_NO_TABLE)
			samples->rule_missing = true;
}

static void write_sample(struct sample_writer *samples,
                         const struct sample *sample)
{
	struct lua_symbol_entry symbol;

	note_missing_rule(samples, sample);
	samples->sample_count++;
	write_symbols(samples, sample);
	write_label(samples, sample);
	write_sample_facts(samples, sample);
	if (sample->state != STATE_TRACE) {
		write_stack_sample(samples, sample);
		return;
	}
	symbol = symbol_writer_find_lua(samples->symbols, sample->trace_symbol);
	sysprof_write_trace_sample(samples->options.encoder,
	                           sample->trace_number, symbol.prototype,
	                           symbol.first_line);
}

static void write_lua_symbol(struct sample_writer *samples,
                             const struct lua_symbol *symbol)
{
	char function[FUNCTION_NAME_BYTES];
	size_t bytes = symbol_writer_lua(samples->symbols, symbol, function);

	map_lua_symbol(samples, symbol, function, bytes);
}

void sample_writer_record(struct sample_writer *samples,
                          const struct ring_record *record)
{
	switch (record->kind) {
	case RING_SAMPLE:
		write_sample(samples, (const void *)record);
		break;
	case RING_LUA_SYMBOL:
		write_lua_symbol(samples, (const void *)record);
		break;
	case RING_TRACE_SYMBOL:
		symbol_writer_trace(samples->symbols, (const void *)record);
		break;
	}
}

bool sample_writer_rule_was_missing(struct sample_writer *samples)
{
	bool missing = samples->rule_missing;

	samples->rule_missing = false;
	return missing;
}
