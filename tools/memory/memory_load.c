// SPDX-License-Identifier: MIT
/* Loads a memory profile; see memory_load.h. */
#include "memory_load.h"

#include <stdlib.h>
#include <string.h>

#include "profile/loader.h"
#include "profile/memory.h"
#include "stream/frame_name.h"

/* A source that was looked up lately. */
struct recent_source {
	uint64_t value;
	uint64_t line;
	uint64_t trace_number;
	uint32_t source;
	uint32_t location; /* 0: the slot is free */
	uint32_t node;     /* of the location, without a stack */
	uint32_t generation;
};

#define RECENT_SOURCES 1024

struct memory_loader {
	struct loader *base;
	struct memory_options options;
	struct memory_profile *memory;
	uint32_t internal; /* frame of the VM itself */
	/* Sources already looked up; emptied when a symbol changes. */
	struct id_map place_of;    /* value; line, kind -> number of a place */
	struct id_map location_of; /* number of a place, trace -> location */
	uint32_t place_count;
	struct recent_source recent[RECENT_SOURCES];
	uint32_t generation; /* of the recent ones that are good */

	uint64_t trace_number; /* ITEM_CONTEXT */
	/* ITEM_EVENT, of the next event. */
	bool has_stack;
	uint32_t node;
	uint64_t flags;
};

/* The loader whose items are being read: items know their base only. */
static struct memory_loader *loader_of(struct loader *base)
{
	return base->other_context;
}

/* ---- names ------------------------------------------------------------------- */

static uint32_t name_lua(struct memory_loader *loader, uint64_t address,
                         uint64_t line)
{
	const struct lua_function *function =
		symbols_find_named(&loader->base->symbols, address);
	char name[FRAME_NAME_BYTES], file[FRAME_NAME_BYTES];
	struct profile_source source = {.file = file};
	size_t bytes;

	if (function == NULL)
		return naming_prototype(loader->base, address, line, 0);
	bytes = frame_name_lua(name, function->chunk, function->chunk_bytes,
	                       function->first_line, function->name,
	                       strlen(function->name));
	source.file_bytes =
		frame_name_source(file, function->chunk, function->chunk_bytes);
	source.first_line = function->first_line <= INT32_MAX
	                            ? (uint32_t)function->first_line
	                            : 0;
	source.line = line <= INT32_MAX ? (uint32_t)line : 0;
	return profile_frame_at(loader->base->profile, FRAME_LUA, 0, name,
	                        bytes, &source);
}

static uint32_t name_compat_trace(struct memory_loader *loader, uint64_t number)
{
	const struct trace *trace =
		symbols_find_trace(&loader->base->symbols, number);
	struct profile *profile = loader->base->profile;
	struct dump_guest start = {.type = GUEST_LUA};
	uint32_t frame;
	char *name;
	size_t room = 64;
	int bytes;

	if (trace != NULL) {
		start.value = trace->prototype;
		start.line = trace->start_line;
		frame = naming_compat_guest(loader->base, &start);
		room += strlen(profile->frames[frame].name);
	}
	name = memory_zeroed(room, 1);
	bytes = snprintf(name, room, "TRACE [%llu]%s%s",
	                 (unsigned long long)number,
	                 trace != NULL ? " started at " : "",
	                 trace != NULL ? profile->frames[frame].name : "");
	frame = profile_frame(profile, FRAME_LUA, 0, name, (size_t)bytes);
	free(name);
	return frame;
}

static uint32_t name_compat(struct memory_loader *loader,
                            const struct dump_event *event)
{
	struct dump_guest guest = {
		.type = GUEST_LUA,
		.value = event->value,
		.line = event->line,
	};

	switch (event->source) {
	case MEMPROF_LUA:
		return naming_compat_guest(loader->base, &guest);
	case MEMPROF_C:
		return naming_host(loader->base, event->value)->join.frame;
	case MEMPROF_TRACE:
		return name_compat_trace(loader, event->value);
	case MEMPROF_INTERNAL:
		break;
	}
	return loader->internal;
}

static uint32_t name_source(struct memory_loader *loader,
                            const struct dump_event *event)
{
	if (event->value == 0)
		return loader->internal;
	if (loader->options.compat)
		return name_compat(loader, event);
	switch (event->source) {
	case MEMPROF_LUA:
		return name_lua(loader, event->value, event->line);
	case MEMPROF_C:
		return naming_c_function(loader->base, event->value);
	case MEMPROF_TRACE:
		return naming_trace(loader->base, event->value);
	case MEMPROF_INTERNAL:
		break;
	}
	return loader->internal;
}

static void forget_locations(struct memory_loader *loader)
{
	id_map_clear(&loader->location_of);
	loader->generation++;
}

/* Number of a source, whatever its name. */
static uint32_t place_of(struct memory_loader *loader,
                         const struct dump_event *event)
{
	bool is_new;
	uint32_t place = *id_map_add(&loader->place_of, event->value,
	                             event->line << 3 | event->source,
	                             loader->place_count, &is_new);

	if (is_new)
		loader->place_count++;
	return place;
}

static uint32_t find_location(struct memory_loader *loader,
                              const struct dump_event *event)
{
	uint32_t trace = loader->options.traces && event->source == MEMPROF_LUA
	                         ? (uint32_t)loader->trace_number
	                         : 0;
	uint32_t place = place_of(loader, event);
	bool is_new;
	uint32_t *location =
		id_map_add(&loader->location_of, place, trace, 0, &is_new);

	if (is_new)
		*location = allocations_location(
			&loader->memory->allocations,
			name_source(loader, event),
			loader->options.compat ? place : 0, trace);
	return *location;
}

/* The same, with a short way for what comes again and again. */
static const struct recent_source *find_source(struct memory_loader *loader,
                                               const struct dump_event *event)
{
	uint64_t hash = (event->value ^ event->line << 40 ^
	                 loader->trace_number << 20 ^ event->source) *
	                UINT64_C(0x9e3779b97f4a7c15);
	struct recent_source *recent =
		&loader->recent[(hash >> 40) % RECENT_SOURCES];

	if (recent->location != 0 && recent->generation == loader->generation &&
	    recent->value == event->value && recent->line == event->line &&
	    recent->source == event->source &&
	    recent->trace_number == loader->trace_number)
		return recent;
	*recent = (struct recent_source){
		.value = event->value,
		.line = event->line,
		.trace_number = loader->trace_number,
		.source = event->source,
		.location = find_location(loader, event),
		.generation = loader->generation,
	};
	recent->node = profile_node(
		loader->base->profile, PROFILE_ROOT,
		loader->memory->allocations.locations[recent->location].frame);
	return recent;
}

/* ---- items ------------------------------------------------------------------- */

static bool read_session(struct memory_loader *loader, struct byte_input *in)
{
	struct memory_session *session = &loader->memory->session;
	uint64_t version, stacks, realtime_ns;

	if (!byte_input_get_number(in, &version))
		return false;
	if (version != EXTENSION_VERSION)
		return dump_reader_fail(
			&loader->base->reader, byte_input_offset(in),
			"expected extension version %d, got %llu: use the "
			"luajit-parse-memprof of the version that wrote the "
			"dump, or --compat",
			EXTENSION_VERSION, (unsigned long long)version);
	if (!byte_input_get_number(in, &session->pid) ||
	    !byte_input_get_number(in, &session->vm_number) ||
	    !byte_input_get_number(in, &session->sample_bytes) ||
	    !byte_input_get_number(in, &stacks) ||
	    !byte_input_get_number(in, &session->start_monotonic_ns) ||
	    !byte_input_get_number(in, &realtime_ns))
		return false;
	session->known = true;
	session->stacks = stacks != 0;
	loader->memory->allocations.sample_bytes = session->sample_bytes;
	return true;
}

static bool read_context(struct memory_loader *loader, struct byte_input *in)
{
	uint64_t passed_ns, coroutine;

	return byte_input_get_number(in, &passed_ns) &&
	       byte_input_get_number(in, &coroutine) &&
	       byte_input_get_number(in, &loader->trace_number);
}

static bool read_event_facts(struct memory_loader *loader,
                             struct byte_input *in)
{
	uint64_t number;

	if (!byte_input_get_number(in, &number) ||
	    !byte_input_get_number(in, &loader->flags))
		return false;
	if (!extension_find_node(loader->base, number, &loader->node))
		return dump_reader_fail(&loader->base->reader,
		                        byte_input_offset(in),
		                        "expected a stack of the dump for an "
		                        "event, got node %llu",
		                        (unsigned long long)number);
	loader->has_stack = number != 0;
	return true;
}

static bool read_end(struct memory_loader *loader, struct byte_input *in)
{
	struct memory_session *session = &loader->memory->session;

	session->ended =
		byte_input_get_number(in, &session->stop_monotonic_ns) &&
		byte_input_get_number(in, &session->event_count) &&
		byte_input_get_number(in, &session->lost_count);
	return session->ended;
}

static bool read_item(struct loader *base, uint8_t kind, struct byte_input *in)
{
	struct memory_loader *loader = loader_of(base);

	switch (kind) {
	case ITEM_MEMPROF_SESSION:
		return read_session(loader, in);
	case ITEM_CONTEXT:
		return read_context(loader, in);
	case ITEM_EVENT:
		return read_event_facts(loader, in);
	case ITEM_MEMPROF_END:
		return read_end(loader, in);
	}
	return true;
}

/* ---- records ----------------------------------------------------------------- */

static void count_event(struct memory_loader *loader,
                        const struct dump_event *event)
{
	const struct recent_source *source = find_source(loader, event);

	allocations_count(&loader->memory->allocations, event, source->location,
	                  loader->has_stack ? loader->node : source->node,
	                  loader->flags);
	loader->has_stack = false;
	loader->flags = 0;
}

static bool load_record(struct memory_loader *loader,
                        const struct dump_record *record)
{
	struct symbols *symbols = &loader->base->symbols;

	switch (record->kind) {
	case DUMP_PROTO:
		symbols_add_prototype(symbols, record->address, record->text,
		                      record->text_bytes, record->line);
		naming_forget_prototypes(loader->base);
		forget_locations(loader);
		if (loader->options.compat) /* counted as they appear */
			symbols_alias(symbols, record->text,
			              record->text_bytes);
		return true;
	case DUMP_C_SYMBOL:
		symbols_add_c(symbols, record->address, record->text,
		              record->text_bytes);
		naming_forget_hosts(loader->base);
		forget_locations(loader);
		return true;
	case DUMP_TRACE:
		symbols_add_trace(
			symbols, record->number,
			&(struct trace){record->address, record->line});
		naming_forget_traces(loader->base);
		forget_locations(loader);
		return true;
	case DUMP_EXTENSION:
		return loader->options.compat ||
		       extension_read(loader->base, record);
	case DUMP_EVENT:
		count_event(loader, &record->event);
		return true;
	case DUMP_SAMPLE:
	case DUMP_TRACE_SAMPLE:
		break;
	}
	return true;
}

static bool load_records(struct memory_loader *loader, FILE *file,
                         const char *file_name)
{
	struct dump_record record;
	enum dump_read read;

	loader->base->reader.wants_memprof = true;
	if (!dump_reader_open(&loader->base->reader, file, file_name))
		return false;
	while ((read = dump_reader_next(&loader->base->reader, &record)) ==
	       DUMP_READ_RECORD)
		if (!load_record(loader, &record))
			return false;
	return read == DUMP_READ_END;
}

static void open_loader(struct memory_loader *loader,
                        struct memory_profile *memory,
                        const struct memory_options *options)
{
	struct loader *base = memory_zeroed(1, sizeof(*base));

	base->profile = &memory->profile;
	base->options.compat = options->compat;
	base->read_other_item = read_item;
	base->other_context = loader;
	loader->base = base;
	loader->options = *options;
	loader->memory = memory;
	loader->internal = profile_frame(&memory->profile, FRAME_MARKER, 0,
	                                 "INTERNAL", strlen("INTERNAL"));
	memory->allocations.resize_moves_owner = options->compat;
}

void memory_load(struct memory_profile *memory, FILE *file,
                 const char *file_name, const struct memory_options *options)
{
	struct memory_loader *loader = memory_zeroed(1, sizeof(*loader));
	struct loader *base;

	*memory = (struct memory_profile){0};
	profile_open(&memory->profile);
	open_loader(loader, memory, options);
	base = loader->base;
	memory->complete = load_records(loader, file, file_name);
	memory->has_trailing = dump_reader_has_trailing(&base->reader);
	memcpy(memory->error, base->reader.error, sizeof(memory->error));
	memory->aliases = base->symbols.aliases;
	memory->alias_count = base->symbols.alias_count;
	base->symbols.aliases = NULL;
	base->symbols.alias_count = 0;
	loader_free(base);
	id_map_free(&loader->place_of);
	id_map_free(&loader->location_of);
	free(loader);
}

void memory_close(struct memory_profile *memory)
{
	for (size_t i = 0; i < memory->alias_count; i++)
		free(memory->aliases[i]);
	free(memory->aliases);
	allocations_free(&memory->allocations);
	profile_close(&memory->profile);
}

uint64_t memory_lost_count(const struct memory_profile *memory)
{
	return profile_lost_count(&memory->profile);
}

const char *memory_location_name(const struct memory_profile *memory,
                                 uint32_t location, char *text)
{
	const struct allocation_location *at =
		&memory->allocations.locations[location];
	const struct profile_frame *frame = &memory->profile.frames[at->frame];

	if (frame->line == 0 && at->trace_number == 0)
		return frame->name;
	if (at->trace_number == 0)
		snprintf(text, MEMORY_NAME_BYTES, "%s line %u", frame->name,
		         frame->line);
	else
		snprintf(text, MEMORY_NAME_BYTES, "%s line %u, TRACE_%u",
		         frame->name, frame->line, at->trace_number);
	return text;
}

const char *memprof_lost_name(uint64_t reason)
{
	switch (reason) {
	case MEMPROF_LOST_RING_FULL:
		return "the writer thread did not keep up";
	case MEMPROF_LOST_LIVE_FULL:
		return "too many sampled blocks were alive";
	}
	return "unknown reason";
}
