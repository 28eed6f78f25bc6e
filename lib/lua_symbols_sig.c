// SPDX-License-Identifier: MIT
/*
 * Lua symbols. Runs in the signal handler.
 */
#include "lua_symbols_sig.h"

#include <string.h>

#include "vm/call_name_sig.h"

/* A chunk name is a path, or the source text of the chunk. */
#define CHUNK_NAME_BYTES_MAX 1024

/* What identifies a prototype beyond its address. */
struct prototype_contents {
	uint64_t chunk; /* address of the chunk name's text */
	uint32_t chunk_bytes;
	uint32_t chunk_hash;
	uint32_t first_line;
	uint32_t line_count;
	uint32_t bytecode_count;
	uint32_t size; /* with all that lies behind the bytecode */
};

static bool read_chunk_name(const struct vm_layout *layout, uint64_t prototype,
                            struct prototype_contents *contents)
{
	uint64_t string;

	if (!load_reference(layout,
	                    prototype + layout->object.prototype.chunk_name,
	                    &string))
		return false;
	contents->chunk = string + layout->string.bytes;
	return load_u32(string + layout->string.length,
	                &contents->chunk_bytes) &&
	       load_u32(string + layout->string.length - 4,
	                &contents->chunk_hash);
}

static bool read_contents(const struct vm *vm, uint64_t prototype,
                          struct prototype_contents *contents)
{
	const struct vm_layout *layout = vm->layout;

	return is_object(layout, prototype, TYPE_PROTOTYPE) &&
	       read_chunk_name(layout, prototype, contents) &&
	       load_u32(prototype + layout->object.prototype.first_line,
	                &contents->first_line) &&
	       load_u32(prototype + layout->object.prototype.line_count,
	                &contents->line_count) &&
	       load_u32(prototype + layout->object.prototype.bytecode_count,
	                &contents->bytecode_count) &&
	       load_u32(prototype + layout->object.prototype.size,
	                &contents->size);
}

/* Then its first line is 0, as that of a main chunk is. */
static bool is_stripped(const struct vm_layout *layout, uint64_t prototype,
                        const struct prototype_contents *contents)
{
	uint64_t line_info;

	return !contents->first_line &&
	       load_reference(layout,
	                      prototype + layout->object.prototype.line_info,
	                      &line_info) &&
	       !line_info;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

static uint64_t hash_contents(const struct prototype_contents *contents)
{
	uint64_t hash = mix(contents->chunk_hash, contents->chunk_bytes);

	hash = mix(hash, contents->first_line);
	hash = mix(hash, contents->line_count);
	hash = mix(hash, contents->bytecode_count);
	return mix(hash, contents->size);
}

/* Keeps the start of a long name, but of a path its mark and its end. */
static bool copy_chunk_name(const struct prototype_contents *contents,
                            char *name, uint32_t bytes)
{
	uint64_t start = contents->chunk;

	if (!bytes)
		return true;
	if (!load_bytes(name, start, bytes))
		return false;
	if (bytes == contents->chunk_bytes || name[0] != '@')
		return true;
	return load_bytes(name + 1, start + contents->chunk_bytes - (bytes - 1),
	                  bytes - 1);
}

/* The prototype gets its id. */
static enum symbol_result describe(struct lua_symbols *symbols,
                                   const struct vm *vm,
                                   struct known_prototype *known,
                                   const struct prototype_contents *contents,
                                   const struct call_name *name)
{
	uint32_t chunk_bytes = contents->chunk_bytes;
	struct lua_symbol *record;
	size_t bytes;

	if (chunk_bytes > CHUNK_NAME_BYTES_MAX)
		chunk_bytes = CHUNK_NAME_BYTES_MAX;
	bytes = (sizeof(*record) + chunk_bytes + name->bytes + 7) & ~(size_t)7;
	record = ring_reserve(symbols->ring, bytes);
	if (!record)
		return SYMBOL_RING_FULL;
	record->record.bytes = (uint32_t)bytes;
	record->record.kind = RING_LUA_SYMBOL;
	record->prototype = known->prototype;
	record->arena_address = known->arena_address;
	record->first_line = known->first_line;
	record->line_count = known->line_count;
	record->chunk_bytes = chunk_bytes;
	record->call_name_bytes = name->bytes;
	record->call_name_is_local = name->is_local;
	record->stripped = is_stripped(vm->layout, known->prototype, contents);
	record->prototype_bytes = contents->size;
	if (!copy_chunk_name(contents, record->chunk, chunk_bytes))
		return SYMBOL_UNREADABLE;
	memcpy(record->chunk + chunk_bytes, name->text, name->bytes);
	known->id = atomic_fetch_add(symbols->last_id, 1) + 1;
	record->id = known->id;
	ring_commit(symbols->ring, &record->record);
	return SYMBOL_KNOWN;
}

static uint32_t hash_name(const struct call_name *name)
{
	uint64_t hash = name->bytes;

	for (uint32_t i = 0; i < name->bytes; i++)
		hash = mix(hash, (unsigned char)name->text[i]);
	return (uint32_t)hash | 1;
}

/* A main chunk is one, however it was called. */
static void read_name(const struct vm *vm, const struct guest_frame *frame,
                      uint64_t prototype,
                      const struct prototype_contents *contents,
                      struct call_name *name)
{
	name->bytes = 0;
	name->is_local = false;
	if (frame && (contents->first_line ||
	              is_stripped(vm->layout, prototype, contents)))
		call_name_read(frame, name);
}

/* Under a label, as "=template", any code may come and go. */
static void note_name(struct known_prototype *known,
                      const struct prototype_contents *contents,
                      const struct call_name *name, uint32_t round)
{
	uint8_t mark;

	if (name->bytes == 0 || !load_u8(contents->chunk, &mark) || mark != '=')
		return;
	known->call_hash = hash_name(name);
	known->call_round = round;
}

/* Is it still called by its name, where another one could be at its address? */
static bool keeps_name(const struct vm *vm, struct known_prototype *known,
                       const struct guest_frame *frame,
                       const struct prototype_contents *contents,
                       struct call_name *name, uint32_t round)
{
	if (!known->call_hash || !frame || known->call_round == round)
		return true;
	read_name(vm, frame, known->prototype, contents, name);
	if (name->bytes == 0 || hash_name(name) != known->call_hash)
		return false;
	known->call_round = round;
	return true;
}

/* The entry of the address, or the free one where it belongs. */
static struct known_prototype *find_entry(struct lua_symbols *symbols,
                                          uint64_t prototype)
{
	uint64_t slot = mix(0, prototype >> 3) % PROTOTYPES_MAX;

	while (symbols->prototypes[slot].prototype &&
	       symbols->prototypes[slot].prototype != prototype)
		slot = (slot + 1) % PROTOTYPES_MAX;
	return &symbols->prototypes[slot];
}

void lua_symbols_begin(struct lua_symbols *symbols)
{
	symbols->round++;
}

enum symbol_result lua_symbols_find(struct lua_symbols *symbols,
                                    const struct vm *vm, uint64_t prototype,
                                    const struct guest_frame *frame,
                                    const struct known_prototype **found)
{
	struct known_prototype *entry = find_entry(symbols, prototype);
	struct prototype_contents contents;
	struct known_prototype fresh = {.prototype = prototype};
	enum symbol_result result;
	struct call_name name;
	bool is_alike;

	if (!read_contents(vm, prototype, &contents))
		return SYMBOL_UNREADABLE;
	fresh.contents = hash_contents(&contents);
	*found = entry;
	is_alike = entry->prototype && entry->contents == fresh.contents;
	if (is_alike &&
	    keeps_name(vm, entry, frame, &contents, &name, symbols->round))
		return SYMBOL_KNOWN;
	if (!entry->prototype &&
	    symbols->prototype_count >= PROTOTYPES_MAX / 4 * 3)
		return SYMBOL_TABLE_FULL;
	fresh.first_line = contents.first_line;
	fresh.line_count = contents.line_count;
	if (symbols->arena)
		fresh.arena_address = address_arena_reserve(
			symbols->arena,
			LUA_SYMBOL_RANGE_BYTES(contents.line_count));
	read_name(vm, frame, prototype, &contents, &name);
	if (is_alike)
		fresh.rename_count = entry->rename_count + 1;
	if (fresh.rename_count > RENAMES_MAX)
		name.bytes = 0;
	note_name(&fresh, &contents, &name, symbols->round);
	result = describe(symbols, vm, &fresh, &contents, &name);
	if (result != SYMBOL_KNOWN)
		return result;
	if (!entry->prototype)
		symbols->prototype_count++;
	*entry = fresh;
	return SYMBOL_KNOWN;
}

static enum symbol_result describe_trace(struct lua_symbols *symbols,
                                         const struct known_trace *known,
                                         uint32_t line)
{
	struct trace_symbol *record =
		ring_reserve(symbols->ring, sizeof(*record));

	if (!record)
		return SYMBOL_RING_FULL;
	*record = (struct trace_symbol){
		.record = {sizeof(*record), RING_TRACE_SYMBOL},
		.trace_number = known->number,
		.lua_symbol = known->lua_symbol,
		.start_line = line,
		.code = known->code,
		.code_bytes = known->code_bytes,
	};
	ring_commit(symbols->ring, &record->record);
	return SYMBOL_KNOWN;
}

enum symbol_result lua_symbols_find_trace(struct lua_symbols *symbols,
                                          const struct vm *vm, uint32_t number,
                                          uint32_t *lua_symbol)
{
	struct known_trace *entry =
		&symbols->traces[(number + 97 * vm->number) % TRACES_MAX];
	uint64_t trace = trace_object(vm, number);
	const struct known_prototype *prototype;
	struct known_trace fresh;
	enum symbol_result result;
	struct trace_start start;

	*lua_symbol = 0;
	if (!trace || !trace_read_start(vm, trace, &start))
		return SYMBOL_UNREADABLE;
	result = lua_symbols_find(symbols, vm, start.prototype, NULL,
	                          &prototype);
	if (result != SYMBOL_KNOWN)
		return result;
	*lua_symbol = prototype->id;
	fresh = (struct known_trace){
		.start_pc = start.pc,
		.vm_number = vm->number,
		.number = number,
		.lua_symbol = prototype->id,
	};
	if (!load_u64(trace + vm->layout->trace.code, &fresh.code) ||
	    !load_u32(trace + vm->layout->trace.code_bytes, &fresh.code_bytes))
		return SYMBOL_UNREADABLE;
	if (entry->start_pc == fresh.start_pc &&
	    entry->number == fresh.number &&
	    entry->vm_number == fresh.vm_number &&
	    entry->lua_symbol == fresh.lua_symbol && entry->code == fresh.code)
		return SYMBOL_KNOWN;
	result = describe_trace(symbols, &fresh, start.line);
	if (result == SYMBOL_KNOWN)
		*entry = fresh;
	return result;
}

uint64_t known_prototype_address(const struct known_prototype *known,
                                 uint32_t line)
{
	if (line < known->first_line ||
	    line - known->first_line > known->line_count)
		return known->arena_address;
	return known->arena_address + 1 + (line - known->first_line);
}
