// SPDX-License-Identifier: MIT
/* Dumps for tests; see dump_fixture.h. */
#include "dump_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "stream/call_tree.h"

#define MAIN_ADDRESS   0x400000
#define PCALL_ADDRESS  0x401000
#define GC_ADDRESS     0x402000
#define RECORD_ADDRESS 0x403000
#define BURN_ADDRESS   0x404000
#define APP_PROTOTYPE  0x7f0000001000
#define FIB_PROTOTYPE  0x7f0000002000
#define RAD_PROTOTYPE  0x7f0000003000

const char small_dump_folded[] =
	"[no stack] 1\n"
	"main;lua_pcall;main app.lua:0;fib app.lua:3 2\n"
	"main;lua_pcall;main app.lua:0;fib app.lua:3;string.format 1\n"
	"main;lua_pcall;main app.lua:0;l_burn;[truncated] 1\n"
	"main;lua_pcall;main app.lua:0;lj_gc_step 1\n"
	"main;lua_pcall;main app.lua:0;rad builtin 1\n";

const char small_dump_folded_lines[] =
	"[no stack] 1\n"
	"main;lua_pcall;main app.lua:0;lj_gc_step 1\n"
	"main;lua_pcall;main app.lua:0;rad builtin 1\n"
	"main;lua_pcall;main app.lua:0 line 20;fib app.lua:3 line 4 1\n"
	"main;lua_pcall;main app.lua:0 line 20;fib app.lua:3 line 5 1\n"
	"main;lua_pcall;main app.lua:0 line 20;fib app.lua:3 line "
	"5;string.format 1\n"
	"main;lua_pcall;main app.lua:0 line 21;l_burn;[truncated] 1\n";

const char labelled_dump_folded[] =
	"[label /item];main app.lua:0 1\n"
	"[label /search];main app.lua:0 2\n"
	"[label a\\x3bb \\x22c\\x22];main app.lua:0 2\n"
	"[no label];main app.lua:0 2\n";

size_t memory_dump_flush(const void **data, size_t bytes, void *context)
{
	struct memory_dump *dump = context;

	dump->flush_count++;
	if (dump->count + bytes > dump->capacity) {
		dump->capacity = (dump->count + bytes) * 2;
		dump->bytes = realloc(dump->bytes, dump->capacity);
		if (dump->bytes == NULL)
			abort();
	}
	memcpy(dump->bytes + dump->count, *data, bytes);
	dump->count += bytes;
	return bytes;
}

void memory_dump_free(struct memory_dump *dump)
{
	free(dump->bytes);
	*dump = (struct memory_dump){0};
}

/* Writer and tree of a dump in the making. */
struct making {
	struct sysprof_encoder encoder;
	struct call_tree tree;
	uint64_t time_ns;
};

static void write_session(struct making *making)
{
	making->time_ns = 1000;
	sysprof_write_session(&making->encoder,
	                      &(struct session_facts){
				      .pid = 4321,
				      .mode = 2,
				      .interval_ns = 10000000,
				      .start_monotonic_ns = making->time_ns,
				      .start_realtime_ns = 1700000000000000000,
				      .clock = "perf task clock",
				      .vm = "LuaJIT 2.1",
				      .writer = "test 1.0",
			      });
}

static void write_lua(struct making *making, uint64_t id, uint64_t prototype,
                      const char *chunk, uint32_t first_line, const char *name)
{
	sysprof_write_proto(&making->encoder, prototype, chunk, strlen(chunk),
	                    first_line);
	sysprof_write_lua_symbol(&making->encoder,
	                         &(struct lua_symbol_facts){
					 .id = id,
					 .prototype = prototype,
					 .first_line = first_line,
					 .line_count = 9,
					 .chunk = chunk,
					 .chunk_bytes = strlen(chunk),
					 .function = name,
				 });
}

static void write_symbols(struct making *making)
{
	struct sysprof_encoder *encoder = &making->encoder;

	sysprof_write_c_symbol(encoder, MAIN_ADDRESS, "main");
	sysprof_write_c_symbol(encoder, PCALL_ADDRESS, "lua_pcall");
	sysprof_write_c_symbol(encoder, GC_ADDRESS, "lj_gc_step");
	sysprof_write_c_symbol(encoder, RECORD_ADDRESS, "lj_record_ins");
	sysprof_write_c_symbol(encoder, BURN_ADDRESS, "l_burn");
	write_lua(making, 1, APP_PROTOTYPE, "@app.lua", 0, "");
	write_lua(making, 2, FIB_PROTOTYPE, "@app.lua", 3, "fib");
	write_lua(making, 3, RAD_PROTOTYPE, "rad", UINT32_MAX, "");
	sysprof_write_fast_symbol(encoder, 90, "string.format");
	sysprof_write_trace(encoder, 7, FIB_PROTOTYPE, 4);
}

/* The stack main, lua_pcall, frames: count of them, root first. */
static void write_stack(struct making *making, const struct stack_node *frames,
                        size_t count)
{
	const struct stack_node base[2] = {
		{.kind = FRAME_HOST, .value = MAIN_ADDRESS + 8},
		{.kind = FRAME_HOST, .value = PCALL_ADDRESS + 8},
	};
	uint32_t node = 0;

	making->time_ns += 10000000;
	if (count > 0) {
		call_tree_make_room(&making->tree, &making->encoder, count + 2);
		for (size_t i = 0; i < 2; i++)
			node = sysprof_write_frame(&making->encoder,
			                           &making->tree, node,
			                           &base[i]);
		for (size_t i = 0; i < count; i++)
			node = sysprof_write_frame(&making->encoder,
			                           &making->tree, node,
			                           &frames[i]);
	}
	sysprof_write_sample_facts(&making->encoder,
	                           &(struct sample_facts){
					   .time_ns = making->time_ns,
					   .thread_id = 4321,
					   .vm_number = 1,
					   .coroutine = 0x7f0000000100,
					   .leaf_node = node,
				   });
}

static const uint64_t host[2] = {PCALL_ADDRESS + 8, MAIN_ADDRESS + 8};

static void write_lua_samples(struct making *making)
{
	struct stack_node frames[] = {
		{.kind = FRAME_LUA, .value = 1, .line = 20},
		{.kind = FRAME_LUA, .value = 2, .line = 4},
		{.kind = FRAME_FAST, .value = 90},
	};
	const struct guest_entry guest[] = {
		{.type = GUEST_FAST, .value = 90},
		{.type = GUEST_LUA, .value = FIB_PROTOTYPE, .first_line = 3},
		{.type = GUEST_LUA, .value = APP_PROTOTYPE},
	};

	write_stack(making, frames, 2);
	sysprof_write_sample(&making->encoder, STATE_LFUNC, guest + 1, 2, host,
	                     2);
	frames[1].line = 5;
	write_stack(making, frames, 3);
	sysprof_write_sample(&making->encoder, STATE_FFUNC, guest, 3, host, 2);
	frames[1].flags = FRAME_FLAG_COMPILED;
	write_stack(making, frames, 2);
	sysprof_write_trace_sample(&making->encoder, 7, FIB_PROTOTYPE, 3);
}

static void write_other_samples(struct making *making)
{
	struct stack_node frames[] = {
		{.kind = FRAME_LUA, .value = 1, .line = 21},
		{.kind = FRAME_C, .value = BURN_ADDRESS},
		{.kind = FRAME_MARKER, .value = MARKER_TRUNCATED, .line = 1800},
	};
	const struct guest_entry guest[] = {
		{.type = GUEST_C, .value = BURN_ADDRESS},
		{.type = GUEST_LUA, .value = APP_PROTOTYPE},
	};

	write_stack(making, frames, 3);
	sysprof_write_sample(&making->encoder, STATE_CFUNC, guest, 2, host, 2);
	frames[0].line = 0;
	frames[1] = (struct stack_node){.kind = FRAME_HOST,
	                                .value = GC_ADDRESS + 16};
	write_stack(making, frames, 2);
	sysprof_write_sample(&making->encoder, STATE_GC, NULL, 0, host, 2);
	frames[1] = (struct stack_node){.kind = FRAME_LUA, .value = 3};
	write_stack(making, frames, 2);
	sysprof_write_sample(&making->encoder, STATE_INTERP, NULL, 0, host, 2);
	write_stack(making, NULL, 0);
	sysprof_write_sample(&making->encoder, STATE_EXIT, NULL, 0, NULL, 0);
}

void small_dump_write(struct memory_dump *dump, size_t buffer_bytes)
{
	static struct making making;
	uint8_t buffer[4096];

	*dump = (struct memory_dump){0};
	if (buffer_bytes > sizeof(buffer) ||
	    !call_tree_open(&making.tree, 8)) /* so small that it is reset */
		abort();
	sysprof_encoder_open(&making.encoder, buffer, buffer_bytes,
	                     memory_dump_flush, dump);
	sysprof_write_symtab_begin(&making.encoder);
	sysprof_write_proto(&making.encoder, APP_PROTOTYPE, "@old.lua", 8, 0);
	sysprof_write_c_symbol(&making.encoder, MAIN_ADDRESS, "old_main");
	sysprof_write_trace(&making.encoder, 7, APP_PROTOTYPE, 1);
	sysprof_write_stream_begin(&making.encoder);
	write_session(&making);
	write_symbols(&making);
	write_lua_samples(&making);
	write_other_samples(&making);
	sysprof_write_lost(&making.encoder, LOST_RING_FULL, 1);
	sysprof_write_lost(&making.encoder, LOST_NESTED, 2);
	sysprof_write_lost(&making.encoder, LOST_RING_FULL, 3);
	sysprof_write_session_end(&making.encoder, making.time_ns + 1,
	                          SMALL_DUMP_SAMPLES, SMALL_DUMP_LOST);
	sysprof_write_end(&making.encoder);
	call_tree_close(&making.tree);
}

/* A sample of the main chunk of app.lua in this coroutine. */
static void write_coroutine_sample(struct making *making, uint64_t coroutine)
{
	const struct stack_node frame = {.kind = FRAME_LUA, .value = 1};
	const struct guest_entry guest = {.type = GUEST_LUA,
	                                  .value = APP_PROTOTYPE};

	making->time_ns += 10000000;
	call_tree_make_room(&making->tree, &making->encoder, 1);
	sysprof_write_sample_facts(
		&making->encoder,
		&(struct sample_facts){
			.time_ns = making->time_ns,
			.thread_id = 4321,
			.vm_number = 1,
			.coroutine = coroutine,
			.leaf_node = sysprof_write_frame(
				&making->encoder, &making->tree, 0, &frame),
		});
	sysprof_write_sample(&making->encoder, STATE_LFUNC, &guest, 1, NULL, 0);
}

void labelled_dump_write(struct memory_dump *dump)
{
	static struct making making;
	uint8_t buffer[64];
	const uint64_t first = 0x7f0000000100;
	const uint64_t second = 0x7f0000000200;

	*dump = (struct memory_dump){0};
	if (!call_tree_open(&making.tree, 64))
		abort();
	sysprof_encoder_open(&making.encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, dump);
	sysprof_write_prologue(&making.encoder);
	write_session(&making);
	write_lua(&making, 1, APP_PROTOTYPE, "@app.lua", 0, "");
	write_coroutine_sample(&making, first);
	sysprof_write_label(&making.encoder, first, "/search");
	write_coroutine_sample(&making, first);
	sysprof_write_label(&making.encoder, second, "a;b \"c\"");
	write_coroutine_sample(&making, second);
	write_coroutine_sample(&making, first);
	sysprof_write_label(&making.encoder, first, "/item");
	write_coroutine_sample(&making, first);
	sysprof_write_label(&making.encoder, first, "");
	write_coroutine_sample(&making, first);
	write_coroutine_sample(&making, second);
	sysprof_write_label(&making.encoder, second, "never sampled");
	sysprof_write_end(&making.encoder);
	call_tree_close(&making.tree);
}

void hostile_dump_write(struct memory_dump *dump)
{
	static struct making making;
	uint8_t buffer[64];
	const struct stack_node frames[] = {
		{.kind = FRAME_LUA, .value = 1},
		{.kind = FRAME_LUA, .value = 2},
		{.kind = FRAME_HOST, .value = GC_ADDRESS},
	};

	*dump = (struct memory_dump){0};
	if (!call_tree_open(&making.tree, 64))
		abort();
	sysprof_encoder_open(&making.encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, dump);
	sysprof_write_prologue(&making.encoder);
	write_session(&making);
	sysprof_write_c_symbol(&making.encoder, MAIN_ADDRESS, "main");
	sysprof_write_c_symbol(&making.encoder, PCALL_ADDRESS, "lua_pcall");
	sysprof_write_c_symbol(&making.encoder, GC_ADDRESS,
	                       "std::map<a, b>::at(int)\n;\"x\" 99");
	write_lua(&making, 1, APP_PROTOTYPE,
	          "@</script><script>alert(1)</script>\\", 1, "a;b\n\tc");
	write_lua(&making, 2, FIB_PROTOTYPE, "return \"\xff]]>&amp;\"", 1, "");
	write_stack(&making, frames, 3);
	sysprof_write_sample(&making.encoder, STATE_GC, NULL, 0, host, 2);
	sysprof_write_end(&making.encoder);
	call_tree_close(&making.tree);
}

/* One Lua function of this chunk in one sample, called by a native one. */
static void write_named_sample(struct sysprof_encoder *encoder, uint64_t number,
                               const char *chunk, size_t chunk_bytes,
                               const char *symbol)
{
	const struct guest_entry guest[] = {{.type = GUEST_LUA,
	                                     .value = APP_PROTOTYPE + number,
	                                     .first_line = 5}};
	const uint64_t native[] = {MAIN_ADDRESS + number * 16};

	sysprof_write_proto(encoder, guest[0].value, chunk, chunk_bytes, 5);
	sysprof_write_c_symbol(encoder, native[0], symbol);
	sysprof_write_sample(encoder, STATE_LFUNC, guest, 1, native, 1);
}

#define LONG_CHUNK_BYTES ((size_t)1 << 20)

void strange_names_write(struct memory_dump *dump)
{
	static const struct {
		const char *chunk;
		size_t chunk_bytes;
		const char *symbol;
	} names[] = {
		{"@a\0b.lua", 8, "a;b c 12"},
		{"@tab\tnewline\n.lua", 18, "\"quoted\" 'twice'"},
		{"=<script>alert(1)</script>", 26, "]]></script><!--"},
		{"return 1\n\xff\xfe", 11, "\xc3\x28\xed\xa0\x80"},
		{"", 0, ""},
		{"@", 1, "x"},
		{"@\xe2\x82\xac.lua", 8, "\xef\xbf\xbf\xf4\x90\x80\x80"},
		{"@fn=(1) fl=(2).lua", 18, "calls=3 4"},
		{"=\\u0000\\\"", 9, "name_[k]"},
		{"@a.lua:3 line 4", 15, "memcpy+0x1234"},
	};
	static struct sysprof_encoder encoder;
	char *chunk = malloc(LONG_CHUNK_BYTES);
	uint8_t buffer[64];

	if (chunk == NULL)
		abort();
	*dump = (struct memory_dump){0};
	sysprof_encoder_open(&encoder, buffer, sizeof(buffer),
	                     memory_dump_flush, dump);
	sysprof_write_prologue(&encoder);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		write_named_sample(&encoder, i, names[i].chunk,
		                   names[i].chunk_bytes, names[i].symbol);
	memset(chunk, '/', LONG_CHUNK_BYTES);
	chunk[0] = '@';
	memcpy(chunk + LONG_CHUNK_BYTES - 12, "/the_end.lua", 12);
	write_named_sample(&encoder, 100, chunk, LONG_CHUNK_BYTES, "long");
	free(chunk);
	sysprof_write_end(&encoder);
}
