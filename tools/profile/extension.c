// SPDX-License-Identifier: MIT
/*
 * Reads the extension's items into the profile and the symbols; see
 * doc/dump-format.md. Kinds that are not known are skipped, and so are bytes
 * behind the known fields of an item.
 */
#include "loader.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Names in items are short; whatever is longer was not written by us. */
#define ITEM_STRING_BYTES_MAX (64u << 10)

/* One item while its fields are read. */
struct item {
	struct loader *loader;
	struct byte_input in; /* its body */
	uint64_t offset;      /* of the item in the file */
};

/* ---- fields ------------------------------------------------------------ */

static bool field_missing(struct item *item, const char *what)
{
	return dump_reader_fail(&item->loader->reader, item->in.problem_offset,
	                        "expected the %s in an extension item, but "
	                        "got: %s",
	                        what,
	                        item->in.problem == INPUT_END
	                                ? "the item ends"
	                                : byte_input_problem_text(&item->in));
}

static bool get_number(struct item *item, uint64_t *number, const char *what)
{
	return byte_input_get_number(&item->in, number) ||
	       field_missing(item, what);
}

/* *string is the caller's to free. */
static bool get_string(struct item *item, char **string, size_t *bytes,
                       const char *what)
{
	struct byte_string read = {0};

	if (!byte_input_get_string(&item->in, &read, ITEM_STRING_BYTES_MAX)) {
		byte_string_free(&read);
		return field_missing(item, what);
	}
	*string = read.bytes;
	if (bytes != NULL)
		*bytes = read.length;
	return true;
}

static bool replace_string(struct item *item, char **string, const char *what)
{
	free(*string);
	*string = NULL;
	return get_string(item, string, NULL, what);
}

/* ---- session ----------------------------------------------------------- */

static bool read_session(struct item *item)
{
	struct profile_session *session = &item->loader->profile->session;

	if (!get_number(item, &session->version, "extension version"))
		return false;
	if (session->version != EXTENSION_VERSION)
		return dump_reader_fail(
			&item->loader->reader, item->offset,
			"expected extension version %d, got %llu: use the "
			"luajit-parse-sysprof of the version that wrote the "
			"dump, or --compat",
			EXTENSION_VERSION,
			(unsigned long long)session->version);
	session->known = true;
	bool good =
		get_number(item, &session->pid, "process id") &&
		get_number(item, &session->mode, "mode") &&
		get_number(item, &session->interval_ns, "interval") &&
		get_number(item, &session->start_monotonic_ns, "start time") &&
		get_number(item, &session->start_realtime_ns, "start date") &&
		replace_string(item, &session->clock, "name of the clock") &&
		replace_string(item, &session->vm,
	                       "name of the virtual machine") &&
		replace_string(item, &session->writer, "name of the writer");
	item->loader->last_time_ns = session->start_monotonic_ns;
	id_map_clear(&item->loader->weights);
	id_map_clear(&item->loader->labels);
	return good;
}

static bool read_mapping(struct item *item)
{
	struct code_mapping mapping = {.start = 0};
	char *build_id = NULL;
	char *path = NULL;
	bool good =
		get_number(item, &mapping.start, "start of a mapping") &&
		get_number(item, &mapping.bytes, "bytes of a mapping") &&
		get_number(item, &mapping.file_offset, "offset of a mapping") &&
		get_number(item, &mapping.file_address,
	                   "address of a mapping") &&
		get_string(item, &build_id, &mapping.build_id_bytes,
	                   "build id of a mapping") &&
		get_string(item, &path, NULL, "path of a mapping");

	if (good) {
		mapping.build_id = (const uint8_t *)build_id;
		mapping.path = path;
		naming_add_mapping(item->loader, &mapping);
	}
	free(build_id);
	free(path);
	return good;
}

static bool read_trace_code(struct item *item)
{
	struct loader *loader = item->loader;
	struct profile *profile = loader->profile;
	struct profile_code code = {.time_ns = loader->last_time_ns};
	uint64_t number;

	if (!get_number(item, &number, "trace of machine code") ||
	    !get_number(item, &code.start, "address of machine code") ||
	    !get_number(item, &code.bytes, "bytes of machine code"))
		return false;
	if (!loader->options.moments)
		return true;
	code.trace = naming_trace(loader, number);
	profile->codes = memory_grow(profile->codes, &profile->code_capacity,
	                             profile->code_count + 1, sizeof(code));
	profile->codes[profile->code_count++] = code;
	return true;
}

static bool read_end(struct item *item)
{
	struct profile_session *session = &item->loader->profile->session;

	session->ended =
		get_number(item, &session->stop_monotonic_ns, "stop time") &&
		get_number(item, &session->sample_count, "sample count") &&
		get_number(item, &session->lost_count, "lost count");
	return session->ended;
}

static bool read_interval(struct item *item)
{
	uint64_t base_ns = item->loader->profile->session.interval_ns;
	uint64_t thread_id, interval_ns, weight;
	bool is_new;

	if (!get_number(item, &thread_id, "thread of an interval") ||
	    !get_number(item, &interval_ns, "interval of a thread"))
		return false;
	weight = base_ns > 0 ? (interval_ns + base_ns / 2) / base_ns : 1;
	if (weight == 0)
		weight = 1;
	if (weight > UINT32_MAX)
		weight = UINT32_MAX;
	*id_map_add(&item->loader->weights, thread_id, 0, 0, &is_new) =
		(uint32_t)weight;
	return true;
}

static bool read_label(struct item *item)
{
	struct loader *loader = item->loader;
	uint64_t coroutine;
	char *label;
	size_t bytes;
	uint32_t number = 0;
	bool is_new;

	if (!get_number(item, &coroutine, "coroutine of a label") ||
	    !get_string(item, &label, &bytes, "text of a label"))
		return false;
	if (loader->options.labels) {
		if (bytes > 0)
			number = name_table_add(&loader->profile->names, label,
			                        bytes) +
			         1;
		*id_map_add(&loader->labels, coroutine, 0, 0, &is_new) = number;
	}
	free(label);
	return true;
}

static bool read_lost(struct item *item)
{
	uint64_t reason;
	uint64_t count;

	if (!get_number(item, &reason, "reason of lost samples") ||
	    !get_number(item, &count, "count of lost samples"))
		return false;
	if (reason >= PROFILE_LOST_REASONS)
		return true;

	/* Each item has all since the start, of one dump among several. */
	uint64_t *known = &item->loader->lost[reason];
	item->loader->profile->lost[reason] += count - *known;
	*known = count;
	return true;
}

/* ---- symbols ----------------------------------------------------------- */

/* The profile keeps where functions are for as long as it has moments. */
static void keep_bytecode(struct loader *loader, uint64_t id,
                          const struct lua_function *function, uint64_t bytes)
{
	struct profile *profile = loader->profile;

	profile->bytecodes = memory_grow(
		profile->bytecodes, &profile->bytecode_capacity,
		profile->bytecode_count + 1, sizeof(*profile->bytecodes));
	profile->bytecodes[profile->bytecode_count++] =
		(struct profile_bytecode){
			.time_ns = loader->last_time_ns,
			.start = function->address,
			.bytes = bytes,
			.frame = naming_lua(loader, id, 0, 0),
		};
}

static bool read_lua_symbol(struct item *item)
{
	uint64_t bytes = 0;
	struct lua_function function = {0};
	uint64_t id;
	uint64_t line_count;
	bool good = get_number(item, &id, "id of a Lua function") &&
	            get_number(item, &function.address, "prototype address") &&
	            get_number(item, &function.first_line, "first line") &&
	            get_number(item, &line_count, "line count") &&
	            get_string(item, &function.chunk, &function.chunk_bytes,
	                       "chunk name") &&
	            get_string(item, &function.name, NULL, "function name");

	if (good && !byte_input_at_end(&item->in))
		good = get_number(item, &bytes, "bytes of a prototype");
	if (good)
		symbols_add_lua(&item->loader->symbols, id, &function);
	if (good && bytes > 0 && item->loader->options.moments)
		keep_bytecode(item->loader, id, &function, bytes);
	free(function.chunk);
	free(function.name);
	return good;
}

static bool read_fast_symbol(struct item *item)
{
	uint64_t number;
	char *name;
	size_t bytes;

	if (!get_number(item, &number, "number of a library function") ||
	    !get_string(item, &name, &bytes, "name of a library function"))
		return false;
	symbols_add_fast(&item->loader->symbols, number, name, bytes);
	free(name);
	return true;
}

/* ---- stacks ------------------------------------------------------------ */

bool extension_find_node(const struct loader *loader, uint64_t number,
                         uint32_t *node)
{
	if (number == 0)
		*node = PROFILE_ROOT;
	else if (number < loader->tree_count)
		*node = loader->tree[number];
	else
		return false;
	return true;
}

static bool find_node(struct item *item, uint64_t number, const char *what,
                      uint32_t *node)
{
	struct loader *loader = item->loader;

	if (extension_find_node(loader, number, node))
		return true;
	return dump_reader_fail(
		&loader->reader, item->offset,
		"expected the %s to be one of %zu nodes, got node %llu", what,
		loader->tree_count > 0 ? loader->tree_count - 1 : 0,
		(unsigned long long)number);
}

static void note_left_out(struct profile *profile, uint64_t count)
{
	if (count > profile->left_out_max)
		profile->left_out_max = count;
}

static bool read_frame(struct item *item, uint8_t kind_and_flags,
                       uint32_t *frame, uint64_t *host_address)
{
	struct loader *loader = item->loader;
	uint8_t kind = kind_and_flags & FRAME_KIND_MASK;
	uint8_t flags = kind_and_flags & FRAME_FLAG_COMPILED;
	uint64_t value;
	uint64_t line = 0;

	if (!get_number(item, &value, "frame of a node"))
		return false;
	if ((kind == FRAME_LUA || kind == FRAME_MARKER) &&
	    !get_number(item, &line, "line or count of a node"))
		return false;
	switch (kind) {
	case FRAME_HOST:
		*host_address = value;
		return true;
	case FRAME_LUA:
		*frame = naming_lua(loader, value, line, flags);
		return true;
	case FRAME_C:
		*frame = naming_c_function(loader, value);
		return true;
	case FRAME_FAST:
		if (value < VM_PART_BASE || loader->options.vm_parts)
			*frame = naming_fast(loader, value);
		return true;
	case FRAME_MARKER:
		*frame = naming_marker(loader, value);
		if (value == MARKER_TRUNCATED)
			note_left_out(loader->profile, line);
		return true;
	}
	return dump_reader_fail(&loader->reader, item->offset,
	                        "expected a frame kind from 1 to 5, got %u",
	                        kind);
}

static bool read_node(struct item *item)
{
	struct loader *loader = item->loader;
	uint64_t number;
	uint8_t kind_and_flags;
	uint32_t parent = PROFILE_ROOT;
	uint32_t frame = 0; /* left out */
	uint64_t host_address = 0;

	if (!get_number(item, &number, "parent of a node") ||
	    !find_node(item, number, "parent of a node", &parent))
		return false;
	if (!byte_input_get_byte(&item->in, &kind_and_flags))
		return field_missing(item, "frame kind of a node");
	if (!read_frame(item, kind_and_flags, &frame, &host_address))
		return false;

	if (loader->tree_count == 0)
		loader->tree_count = 1; /* [0] is the root */
	loader->tree =
		memory_grow(loader->tree, &loader->tree_capacity,
	                    loader->tree_count + 1, sizeof(*loader->tree));
	if ((kind_and_flags & FRAME_KIND_MASK) == FRAME_HOST)
		parent = naming_host_node(loader, parent, host_address);
	else if (frame != 0)
		parent = profile_node(loader->profile, parent, frame);
	loader->tree[loader->tree_count++] = parent;
	return true;
}

static bool read_sample(struct item *item)
{
	struct loader *loader = item->loader;
	struct sample_item *sample = &loader->item;
	uint64_t passed;
	uint64_t node;

	if (!get_number(item, &passed, "time of a sample") ||
	    !get_number(item, &sample->thread_id, "thread of a sample") ||
	    !get_number(item, &sample->vm_number,
	                "virtual machine of a sample") ||
	    !get_number(item, &sample->coroutine, "coroutine of a sample") ||
	    !get_number(item, &node, "leaf node of a sample") ||
	    !find_node(item, node, "leaf of a sample", &sample->leaf))
		return false;
	loader->last_time_ns += (uint64_t)number_unzigzag(passed);
	sample->time_ns = loader->last_time_ns;
	sample->known = true;
	return true;
}

/* ---- items ------------------------------------------------------------- */

static bool read_other(struct item *item, uint8_t kind)
{
	struct loader *loader = item->loader;

	if (loader->read_other_item == NULL ||
	    loader->read_other_item(loader, kind, &item->in))
		return true;
	return loader->reader.error[0] == '\0' &&
	       field_missing(item, "next field");
}

static bool read_body(struct item *item, uint8_t kind)
{
	switch (kind) {
	case ITEM_SESSION:
		return read_session(item);
	case ITEM_LUA_SYMBOL:
		return read_lua_symbol(item);
	case ITEM_FAST_SYMBOL:
		return read_fast_symbol(item);
	case ITEM_NODE:
		return read_node(item);
	case ITEM_SAMPLE:
		return read_sample(item);
	case ITEM_RESET_NODES:
		item->loader->tree_count = 0;
		return true;
	case ITEM_LOST:
		return read_lost(item);
	case ITEM_TRACE_CODE:
		return read_trace_code(item);
	case ITEM_MAPPING:
		return read_mapping(item);
	case ITEM_INTERVAL:
		return read_interval(item);
	case ITEM_LABEL:
		return read_label(item);
	case ITEM_END:
		return read_end(item);
	}
	return read_other(item, kind);
}

/*
 * ITEM_SAMPLE, which nearly every record is, if its fields are numbers of up to
 * 8 bytes that are all there: returns the length of the whole item. 0: read it
 * field by field, which also tells what is wrong.
 */
static size_t read_short_sample(struct loader *loader,
                                const struct dump_record *record, size_t start)
{
	enum {
		PASSED,
		THREAD,
		VM,
		COROUTINE,
		NODE,
		FIELDS
	};
	const uint8_t *bytes = (const uint8_t *)record->text + start;
	uint64_t field[FIELDS];
	size_t at = 2; /* behind kind and length */

	if (record->readable_bytes - start < 2 + FIELDS * sizeof(uint64_t) ||
	    bytes[0] != ITEM_SAMPLE ||
	    (size_t)bytes[1] + 2 > record->text_bytes - start ||
	    bytes[1] >= 0x80)
		return 0;
	for (size_t i = 0; i < FIELDS; i++) {
		size_t used = number_decode_short(bytes + at, &field[i]);

		if (used == 0)
			return 0;
		at += used;
	}
	if (at > 2 + (size_t)bytes[1] || field[NODE] == 0 ||
	    field[NODE] >= loader->tree_count)
		return 0;
	loader->last_time_ns += (uint64_t)number_unzigzag(field[PASSED]);
	loader->item = (struct sample_item){
		.known = true,
		.leaf = loader->tree[field[NODE]],
		.time_ns = loader->last_time_ns,
		.thread_id = field[THREAD],
		.vm_number = field[VM],
		.coroutine = field[COROUTINE],
	};
	return 2 + (size_t)bytes[1];
}

/* The item at *at of the record; moves *at behind it. */
static bool read_item(struct loader *loader, const struct dump_record *record,
                      size_t *at)
{
	struct item item = {.loader = loader,
	                    .offset = record->text_offset + *at};
	uint8_t kind;
	uint64_t bytes;

	byte_input_open_memory(&item.in, record->text + *at,
	                       record->text_bytes - *at, item.offset);
	if (!byte_input_get_byte(&item.in, &kind))
		return field_missing(&item, "kind");
	if (!get_number(&item, &bytes, "length"))
		return false;

	size_t body = *at + item.in.next;
	if (bytes > record->text_bytes - body)
		return dump_reader_fail(
			&loader->reader, item.offset,
			"expected an extension item of at most %zu bytes, got "
			"one of %llu",
			record->text_bytes - body, (unsigned long long)bytes);
	byte_input_open_memory(&item.in, record->text + body, (size_t)bytes,
	                       record->text_offset + body);
	*at = body + (size_t)bytes;
	return read_body(&item, kind);
}

bool extension_read(struct loader *loader, const struct dump_record *record)
{
	size_t at = 0;

	while (at < record->text_bytes) {
		size_t bytes = read_short_sample(loader, record, at);

		at += bytes;
		if (bytes == 0 && !read_item(loader, record, &at))
			return false;
	}
	return true;
}
