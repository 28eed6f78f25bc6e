// SPDX-License-Identifier: MIT
/* Memory profiles for tests; see memory_fixture.h. */
#include "memory_fixture.h"

#include <string.h>

#include "stream/call_tree.h"

#define MAKE    UINT64_C(0x7f0000001000)
#define GROW    UINT64_C(0x7f0000002000)
#define C_ENTRY UINT64_C(0x400500)

static struct sysprof_encoder encoder;
static uint8_t buffer[4096];

static void write_symbols(void)
{
	struct lua_symbol_facts make = {
		.id = 1,
		.prototype = MAKE,
		.first_line = 3,
		.line_count = 5,
		.chunk = "@a.lua",
		.chunk_bytes = 6,
		.function = "make",
	};
	struct lua_symbol_facts grow = make;

	grow.id = 2;
	grow.prototype = GROW;
	grow.first_line = 10;
	grow.function = "";
	sysprof_write_proto(&encoder, MAKE, "@a.lua", 6, 3);
	sysprof_write_lua_symbol(&encoder, &make);
	sysprof_write_proto(&encoder, GROW, "@a.lua", 6, 10);
	sysprof_write_lua_symbol(&encoder, &grow);
	sysprof_write_c_symbol(&encoder, 0x400500, "c_make");
	sysprof_write_trace(&encoder, 7, MAKE, 4);
}

static void write_event(enum memprof_event event, enum memprof_source source,
                        uint64_t value, uint32_t line, uint64_t old_address,
                        uint64_t old_bytes, uint64_t new_address,
                        uint64_t new_bytes)
{
	struct memprof_event_fields fields = {
		event,       source,    value,       line,
		old_address, old_bytes, new_address, new_bytes};

	memprof_write_event(&encoder, &fields);
}

static void write_events(void)
{
	struct memprof_context in_trace = {.time_ns = 1500,
	                                   .coroutine = 0x7f0000003000,
	                                   .trace_number = 7};
	struct stack_node leaf = {.value = 1, .line = 5, .kind = FRAME_LUA};
	struct call_tree tree;
	uint32_t node;

	call_tree_open(&tree, 64);
	node = sysprof_write_frame(&encoder, &tree, 0, &leaf);
	memprof_write_event_facts(&encoder, node, 0);
	write_event(MEMPROF_ALLOC, MEMPROF_LUA, MAKE, 5, 0, 0, 0x1000, 100);
	write_event(MEMPROF_ALLOC, MEMPROF_LUA, MAKE, 5, 0, 0, 0x2000, 100);
	memprof_write_context(&encoder, &in_trace);
	write_event(MEMPROF_ALLOC, MEMPROF_LUA, MAKE, 5, 0, 0, 0x3000, 40);
	write_event(MEMPROF_ALLOC, MEMPROF_C, C_ENTRY, 0, 0, 0, 0x4000, 8);
	write_event(MEMPROF_ALLOC, MEMPROF_TRACE, 7, 0, 0, 0, 0x5000, 16);
	/* make()'s block grows elsewhere, and is given back by the VM. */
	write_event(MEMPROF_REALLOC, MEMPROF_LUA, GROW, 12, 0x1000, 100, 0x6000,
	            300);
	write_event(MEMPROF_FREE, MEMPROF_INTERNAL, 0, 0, 0x2000, 100, 0, 0);
	/* From before the start. */
	write_event(MEMPROF_FREE, MEMPROF_INTERNAL, 0, 0, 0x9000, 500, 0, 0);
	write_event(MEMPROF_REALLOC, MEMPROF_INTERNAL, 0, 0, 0xa000, 10, 0xb000,
	            20);
	call_tree_close(&tree);
}

void memory_dump_write(struct memory_dump *dump, size_t buffer_bytes,
                       uint64_t sample_bytes)
{
	struct memprof_session_facts facts = {
		.pid = 42,
		.vm_number = 1,
		.sample_bytes = sample_bytes,
		.stacks = true,
		.start_monotonic_ns = 1000,
		.start_realtime_ns = 2000,
		.vm = "LuaJIT",
		.writer = "test",
	};

	memprof_encoder_open(&encoder, buffer, buffer_bytes, memory_dump_flush,
	                     dump);
	sysprof_write_prologue(&encoder);
	memprof_write_session(&encoder, &facts);
	write_symbols();
	write_events();
	sysprof_write_lost(&encoder, (enum lost_reason)MEMPROF_LOST_RING_FULL,
	                   MEMORY_DUMP_LOST);
	memprof_write_session_end(&encoder, 9000, MEMORY_DUMP_EVENTS,
	                          MEMORY_DUMP_LOST);
	sysprof_write_end(&encoder);
}
