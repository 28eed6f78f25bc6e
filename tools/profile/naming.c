// SPDX-License-Identifier: MIT
/* Frames of the profile from what a dump has of them; see loader.h. */
#include "loader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "fast_names.h"
#include "memory.h"
#include "stream/frame_name.h"

void naming_forget_prototypes(struct loader *loader)
{
	id_map_clear(&loader->proto_cache);
}

void naming_forget_hosts(struct loader *loader)
{
	id_map_clear(&loader->host_cache);
	loader->host_count = 0;
}

void naming_forget_traces(struct loader *loader)
{
	id_map_clear(&loader->trace_cache);
}

/* ---- native code ------------------------------------------------------- */

/* For whoever looks up addresses again. */
static void keep_mapping(struct loader *loader,
                         const struct code_mapping *mapping)
{
	const char *sysroot = loader->options.sysroot;
	struct profile_mapping kept = {
		.time_ns = loader->last_time_ns,
		.start = mapping->start,
		.bytes = mapping->bytes,
		.file_offset = mapping->file_offset,
		.dump = loader->dump,
		.path = mapping->path,
	};
	char path[PATH_MAX];
	char *real;

	if (mapping->build_id_bytes <= sizeof(kept.build_id)) {
		kept.build_id_bytes = mapping->build_id_bytes;
		memcpy(kept.build_id, mapping->build_id,
		       mapping->build_id_bytes);
	}
	snprintf(path, sizeof(path), "%s%s", sysroot != NULL ? sysroot : "",
	         mapping->path);
	real = sysroot != NULL ? realpath(path, NULL) : NULL;
	if (real != NULL)
		kept.path = real;
	profile_add_mapping(loader->profile, &kept);
	free(real);
}

/* Does a file that is here have a symbol for the address? */
static bool is_in_file(struct loader *loader, uint64_t address)
{
	struct profile *profile = loader->profile;
	struct code_frame code;

	if (!loader->options.native_addresses || loader->symbolizer == NULL ||
	    !symbolizer_find(loader->symbolizer, address, &code) ||
	    code.name == NULL)
		return false;
	for (size_t i = profile->mapping_count; i-- > 0;) {
		struct profile_mapping *mapping = &profile->mappings[i];

		if (mapping->dump != loader->dump ||
		    address - mapping->start >= mapping->bytes)
			continue;
		mapping->is_used = true;
		return true;
	}
	return false;
}

void naming_add_mapping(struct loader *loader,
                        const struct code_mapping *mapping)
{
	const struct symbolize_options options = {
		.sysroot = loader->options.sysroot,
		.notice = loader->options.notice,
	};

	if (loader->options.compat || loader->options.host_addresses)
		return;
	if (loader->symbolizer == NULL)
		loader->symbolizer = symbolizer_open(&options);
	symbolizer_add_mapping(loader->symbolizer, mapping);
	if (loader->options.native_addresses)
		keep_mapping(loader, mapping);
	naming_forget_hosts(loader);
}

/* The spelling of a symbol, demangled if it is mangled. */
static size_t symbol_name(char *name, const char *symbol)
{
	char *demangled = demangle(symbol);
	const char *shown = demangled != NULL ? demangled : symbol;
	size_t bytes = frame_name_native(name, shown, strlen(shown));

	free(demangled);
	return bytes;
}

/* code: what the object file says; its name is NULL to use the dump's. */
static uint32_t native_frame(struct loader *loader, enum frame_kind kind,
                             uint64_t address, const struct c_symbol *symbol,
                             const struct code_frame *code)
{
	char name[FRAME_NAME_BYTES];
	struct profile_source source = {
		.file = code->file != NULL ? code->file : "",
		.file_bytes = code->file != NULL ? strlen(code->file) : 0,
		.line = code->line,
	};
	size_t bytes;

	if (is_in_file(loader, address))
		source = (struct profile_source){
			.file = "",
			.address = address,
		};
	if (loader->options.host_addresses ||
	    (symbol == NULL && code->name == NULL))
		bytes = frame_name_address(name, address);
	else
		bytes = symbol_name(name, code->name != NULL ? code->name
		                                             : symbol->name);
	return profile_frame_at(loader->profile, kind,
	                        address >> 63 ? PROFILE_FLAG_KERNEL : 0, name,
	                        bytes, &source);
}

/* Where the process found no symbol it wrote the object's name and an offset,
 * or just the object's name. */
static bool is_nameless(const struct c_symbol *symbol)
{
	return symbol == NULL || symbol->name[0] == '[' ||
	       strstr(symbol->name, "+0x") != NULL;
}

/* What the object files say of the address, outermost first; at least one frame,
 * which may be empty. The dump's own name is preferred: it is from the process
 * itself, and perf's is the same. */
static size_t look_up(struct loader *loader, uint64_t address,
                      const struct c_symbol *symbol, struct code_frame *frames)
{
	const struct load_options *options = &loader->options;
	size_t count = 0;

	frames[0] = (struct code_frame){NULL, NULL, 0};
	if (loader->symbolizer == NULL)
		return 1;
	if (options->inlines)
		count = symbolizer_find_inlined(loader->symbolizer, address,
		                                frames);
	else if (options->native_lines || is_nameless(symbol))
		symbolizer_find(loader->symbolizer, address, &frames[0]);
	if (!is_nameless(symbol))
		frames[0].name = NULL;
	if (count == 0)
		count = 1;
	for (size_t i = 0; i < count && !options->native_lines; i++)
		frames[i] = (struct code_frame){frames[i].name, NULL, 0};
	return count;
}

/* "SYMBOL:0xADDR" with the symbol's address, or "CFUNC 0xADDR". */
static uint32_t compat_native_frame(struct loader *loader, uint64_t address,
                                    const struct c_symbol *symbol)
{
	const char *prefix = symbol != NULL ? symbol->name : "CFUNC";
	uint64_t shown = symbol != NULL ? symbol->address : address;
	size_t room = strlen(prefix) + 32;
	char *name = memory_zeroed(room, 1);
	int bytes =
		snprintf(name, room, "%s%c%#llx", prefix,
	                 symbol != NULL ? ':' : ' ', (unsigned long long)shown);
	uint32_t frame = profile_frame(loader->profile, FRAME_HOST, 0, name,
	                               (size_t)bytes);

	free(name);
	return frame;
}

/* The frames of the address, but for the compat output. */
static void name_frames(struct loader *loader, uint64_t address,
                        const struct c_symbol *symbol,
                        struct host_naming *naming)
{
	struct code_frame frames[SYMBOLIZE_FRAMES_MAX];
	size_t count = look_up(loader, address, symbol, frames);

	if (is_in_file(loader, address))
		count = 1;
	naming->join.frame =
		native_frame(loader, FRAME_HOST, address, symbol, &frames[0]);
	for (size_t i = 1; i < count; i++)
		naming->inlined[naming->inlined_count++] = native_frame(
			loader, FRAME_HOST, address, NULL, &frames[i]);
}

static struct host_naming name_host(struct loader *loader, uint64_t address)
{
	const struct c_symbol *symbol =
		symbols_find_c(&loader->symbols, address);
	struct host_naming naming = {0};

	if (symbol != NULL) {
		naming.join.has_symbol = true;
		naming.join.address = symbol->address;
		naming.join.enters_vm = join_name_enters_vm(symbol->name);
		naming.compat = compat_entry_of(symbol->name);
	}
	if (loader->options.compat)
		naming.join.frame =
			compat_native_frame(loader, address, symbol);
	else
		name_frames(loader, address, symbol, &naming);
	return naming;
}

const struct host_naming *naming_host(struct loader *loader, uint64_t address)
{
	bool is_new;
	uint32_t index = *id_map_add(&loader->host_cache, address, 0,
	                             (uint32_t)loader->host_count, &is_new);

	if (is_new) {
		loader->hosts = memory_grow(
			loader->hosts, &loader->host_capacity,
			loader->host_count + 1, sizeof(*loader->hosts));
		loader->hosts[loader->host_count++] =
			name_host(loader, address);
	}
	return &loader->hosts[index];
}

uint32_t naming_host_node(struct loader *loader, uint32_t parent,
                          uint64_t address)
{
	const struct host_naming *naming = naming_host(loader, address);
	uint32_t node =
		profile_node(loader->profile, parent, naming->join.frame);

	for (size_t i = 0; i < naming->inlined_count; i++)
		node = profile_node(loader->profile, node, naming->inlined[i]);
	return node;
}

uint32_t naming_c_function(struct loader *loader, uint64_t address)
{
	const struct c_symbol *symbol =
		symbols_find_c(&loader->symbols, address);
	struct code_frame frames[SYMBOLIZE_FRAMES_MAX];

	look_up(loader, address, symbol, frames);
	return native_frame(loader, FRAME_C, address, symbol, &frames[0]);
}

/* ---- Lua --------------------------------------------------------------- */

uint32_t naming_fast(struct loader *loader, uint64_t number)
{
	const char *known = symbols_find_fast(&loader->symbols, number);
	char name[FRAME_NAME_BYTES];
	size_t bytes;

	if (number >= VM_PART_BASE)
		bytes = frame_name_vm_part(name, number);
	else if (known != NULL)
		bytes = frame_name_native(name, known, strlen(known));
	else
		bytes = (size_t)snprintf(name, sizeof(name),
		                         "[library function %llu]",
		                         (unsigned long long)number);
	return profile_frame(loader->profile, FRAME_FAST, 0, name, bytes);
}

/* file: FRAME_NAME_BYTES, for the source's file. Functions built in the virtual
 * machine have none. */
static struct profile_source lua_source(char *file,
                                        const struct lua_function *function,
                                        uint64_t first_line, uint64_t line)
{
	if (first_line > INT32_MAX)
		return (struct profile_source){.file = ""};
	return (struct profile_source){
		.file = file,
		.file_bytes = frame_name_source(file, function->chunk,
	                                        function->chunk_bytes),
		.first_line = (uint32_t)first_line,
		.line = line <= INT32_MAX ? (uint32_t)line : 0,
	};
}

/* A function of which no symbol tells the chunk. */
static size_t unknown_lua_name(char *name, uint64_t address,
                               uint64_t first_line)
{
	char chunk[32];
	int bytes = snprintf(chunk, sizeof(chunk), "=0x%llx",
	                     (unsigned long long)address);

	return frame_name_lua(name, chunk, (size_t)bytes, first_line,
	                      "function", strlen("function"));
}

uint32_t naming_prototype(struct loader *loader, uint64_t address,
                          uint64_t first_line, uint8_t flags)
{
	bool is_new;
	uint32_t *frame =
		id_map_add(&loader->proto_cache, address,
	                   first_line << 1 | (flags != 0), 0, &is_new);
	const struct lua_function *function;
	char name[FRAME_NAME_BYTES];
	char file[FRAME_NAME_BYTES] = "";
	struct profile_source source = {.file = file};
	size_t bytes;

	if (!is_new)
		return *frame;
	function = symbols_find_prototype(&loader->symbols, address);
	if (function != NULL) {
		bytes = frame_name_lua(name, function->chunk,
		                       function->chunk_bytes, first_line, "",
		                       0);
		source = lua_source(file, function, first_line, 0);
	} else {
		bytes = unknown_lua_name(name, address, first_line);
	}
	*frame = profile_frame_at(loader->profile, FRAME_LUA, flags, name,
	                          bytes, &source);
	return *frame;
}

uint32_t naming_lua(struct loader *loader, uint64_t id, uint64_t line,
                    uint8_t flags)
{
	const struct lua_function *function =
		symbols_find_lua(&loader->symbols, id);
	char name[FRAME_NAME_BYTES];
	char file[FRAME_NAME_BYTES] = "";
	struct profile_source source = {.file = file};
	size_t bytes;

	if (function == NULL) {
		bytes = (size_t)snprintf(name, sizeof(name),
		                         "[Lua function %llu]",
		                         (unsigned long long)id);
	} else {
		bytes = frame_name_lua(name, function->chunk,
		                       function->chunk_bytes,
		                       function->first_line, function->name,
		                       strlen(function->name));
		source = lua_source(file, function, function->first_line, line);
	}
	return profile_frame_at(loader->profile, FRAME_LUA, flags, name, bytes,
	                        &source);
}

static uint32_t name_trace(struct loader *loader, uint64_t number)
{
	const struct trace *trace =
		symbols_find_trace(&loader->symbols, number);
	const struct lua_function *function =
		trace != NULL ? symbols_find_prototype(&loader->symbols,
	                                               trace->prototype)
			      : NULL;
	char name[FRAME_NAME_BYTES];
	char file[FRAME_NAME_BYTES] = "";
	struct profile_source source = {.file = file};
	size_t bytes = frame_name_trace(
		name, number, function != NULL ? function->chunk : "",
		function != NULL ? function->chunk_bytes : 0,
		trace != NULL ? trace->start_line : 0);

	if (function != NULL)
		source = lua_source(file, function, trace->start_line, 0);
	return profile_frame_at(loader->profile, FRAME_LUA, FRAME_FLAG_COMPILED,
	                        name, bytes, &source);
}

uint32_t naming_trace(struct loader *loader, uint64_t number)
{
	bool is_new;
	uint32_t *frame =
		id_map_add(&loader->trace_cache, number, 0, 0, &is_new);

	if (is_new)
		*frame = name_trace(loader, number);
	return *frame;
}

uint32_t naming_marker(struct loader *loader, uint64_t marker)
{
	char name[FRAME_NAME_BYTES];
	size_t bytes = frame_marker_name(name, marker, 0);

	return profile_frame(loader->profile, FRAME_MARKER, 0, name, bytes);
}

/* ---- the old parser's Lua names ---------------------------------------- */

/* It keeps numbers as doubles and prints them as 64-bit integers. */
static int64_t compat_line(uint64_t line)
{
	double rounded = (double)line;

	return rounded < 0x1p63 ? (int64_t)rounded : INT64_MIN;
}

static uint32_t compat_lua(struct loader *loader, uint64_t address,
                           uint64_t line)
{
	const struct lua_function *function =
		symbols_find_prototype(&loader->symbols, address);

	if (address == 0)
		return profile_frame(loader->profile, FRAME_LUA, 0, "INTERNAL",
		                     strlen("INTERNAL"));
	if (function == NULL)
		return naming_host(loader, address)->join.frame;

	uint32_t alias = symbols_alias(&loader->symbols, function->chunk,
	                               function->chunk_bytes);
	size_t room = function->chunk_bytes + 64;
	char *name = memory_zeroed(room, 1);
	if (alias != 0)
		snprintf(name, room, "function_alias_%u:%lld", alias,
		         (long long)compat_line(line));
	else
		snprintf(name, room, "%s:%lld", function->chunk,
		         (long long)compat_line(line));
	uint32_t frame = profile_frame(loader->profile, FRAME_LUA, 0, name,
	                               strlen(name));
	free(name);
	return frame;
}

uint32_t naming_compat_guest(struct loader *loader,
                             const struct dump_guest *guest)
{
	if (guest->type == GUEST_LUA)
		return compat_lua(loader, guest->value, guest->line);
	if (guest->type != GUEST_FAST)
		return 0;

	const char *name = fast_name(guest->value);
	return name != NULL ? profile_frame(loader->profile, FRAME_FAST, 0,
	                                    name, strlen(name))
	                    : 0;
}
