// SPDX-License-Identifier: MIT
/*
 * The families of LuaJIT builds. Facts about the VM, found by asking the
 * compiler at every commit that moves a field; the month and the commit say
 * where a family starts. Only commits that move something used here count. Tarantool's
 * are of its own repository, with the option that it is always built with
 * (LUAJIT_SMART_STRINGS); it shares no row with others.
 *
 * Several families can agree in a group of fields, so the groups have names of
 * their own: kind of reference and the month that brought them.
 */
#include "layout.h"

// clang-format off
#define OBJECT_64 \
	{ \
		.type = 9, \
		.thread = { .status = 11, .global = 16, .base = 32, .top = 40, \
			.stack_limit = 48, .stack = 56, .cframe = 80, \
			.stack_size = 88 }, \
		.function = { .id = 10, .environment = 16, .bytecode = 32, \
			.upvalues = 40, .c_function = 40 }, \
		.prototype = { .bytecode_count = 12, .constants = 32, \
			.size = 56, .chunk_name = 64, .first_line = 72, \
			.line_count = 76, .line_info = 80, \
			.upvalue_names = 88, .variables = 96, .bytes = 104 }, \
		.upvalue = { .value = 32 }, \
		.table = { .array = 16, .metatable = 32, .nodes = 40, \
			.node_mask = 52 }, \
	}
#define OBJECT_32 \
	{ \
		.type = 5, \
		.thread = { .status = 7, .global = 8, .base = 16, .top = 24, \
			.stack_limit = 32, .stack = 36, .cframe = 48, \
			.stack_size = 56 }, \
		.function = { .id = 6, .environment = 8, .bytecode = 16, \
			.upvalues = 20, .c_function = 24 }, \
		.prototype = { .bytecode_count = 8, .constants = 16, \
			.size = 32, .chunk_name = 40, .first_line = 44, \
			.line_count = 48, .line_info = 52, \
			.upvalue_names = 56, .variables = 60, .bytes = 64 }, \
		.upvalue = { .value = 16 }, \
		.table = { .array = 8, .metatable = 16, .nodes = 20, \
			.node_mask = 28 }, \
	}

#define CFRAME_64 \
	{ \
		.bytes = 80, .result_count = 8, .thread = 16, .pc = 24, \
		.previous = 32 \
	}
#define CFRAME_32 \
	{ \
		.bytes = 80, .result_count = 16, .thread = 24, .pc = 28, \
		.previous = 32 \
	}
/* With room for a VM state. */
#define CFRAME_64_TARANTOOL \
	{ \
		.bytes = 96, .result_count = 8, .thread = 16, .pc = 24, \
		.previous = 48 \
	}
#define CFRAME_32_TARANTOOL \
	{ \
		.bytes = 96, .result_count = 16, .thread = 24, .pc = 28, \
		.previous = 48 \
	}

#define GLOBAL_64_2017_05 \
	{ \
		.alloc_function = 16, .alloc_data = 24, .gc_total = 32, \
		.gc_pause = 124, .gc_step_multiplier = 120, \
		.hook_mask = 193, .vmstate = 128, .main_thread = 200, \
		.registry = 208, .hook_function = 312, \
		.panic_function = 328, .current_thread = 344, \
		.jit_base = 352 \
	}
#define GLOBAL_64_2020_06 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 108, .gc_step_multiplier = 104, \
		.hook_mask = 137, .vmstate = 176, .main_thread = 184, \
		.registry = 264, .hook_function = 328, \
		.panic_function = 344, .current_thread = 360, \
		.jit_base = 368 \
	}
#define GLOBAL_64_2020_09 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 108, .gc_step_multiplier = 104, \
		.hook_mask = 145, .vmstate = 184, .main_thread = 192, \
		.registry = 272, .hook_function = 336, \
		.panic_function = 352, .current_thread = 368, \
		.jit_base = 376 \
	}
#define GLOBAL_64_2025_11 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 108, .gc_step_multiplier = 104, \
		.hook_mask = 145, .vmstate = 184, .main_thread = 192, \
		.registry = 272, .hook_function = 344, \
		.panic_function = 360, .current_thread = 376, \
		.jit_base = 384 \
	}
#define GLOBAL_32_2017_05 \
	{ \
		.alloc_function = 16, .alloc_data = 24, .gc_total = 32, \
		.gc_pause = 84, .gc_step_multiplier = 80, .hook_mask = 125, \
		.vmstate = 88, .main_thread = 128, .registry = 136, \
		.hook_function = 216, .panic_function = 232, \
		.current_thread = 248, .jit_base = 252 \
	}
#define GLOBAL_32_2020_06 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 68, .gc_step_multiplier = 64, .hook_mask = 93, \
		.vmstate = 128, .main_thread = 132, .registry = 192, \
		.hook_function = 232, .panic_function = 248, \
		.current_thread = 264, .jit_base = 268 \
	}
#define GLOBAL_32_2020_09 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 68, .gc_step_multiplier = 64, .hook_mask = 97, \
		.vmstate = 136, .main_thread = 140, .registry = 200, \
		.hook_function = 240, .panic_function = 256, \
		.current_thread = 272, .jit_base = 276 \
	}
#define GLOBAL_32_2021_06 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 68, .gc_step_multiplier = 64, .hook_mask = 97, \
		.vmstate = 136, .main_thread = 140, .registry = 216, \
		.hook_function = 256, .panic_function = 272, \
		.current_thread = 288, .jit_base = 292 \
	}
#define GLOBAL_32_2025_11 \
	{ \
		.alloc_function = 0, .alloc_data = 8, .gc_total = 16, \
		.gc_pause = 68, .gc_step_multiplier = 64, .hook_mask = 97, \
		.vmstate = 136, .main_thread = 140, .registry = 216, \
		.hook_function = 264, .panic_function = 280, \
		.current_thread = 296, .jit_base = 300 \
	}
#define GLOBAL_32_2017_05_BACKPORT \
	{ \
		.alloc_function = 16, .alloc_data = 24, .gc_total = 32, \
		.gc_pause = 84, .gc_step_multiplier = 80, .hook_mask = 129, \
		.vmstate = 92, .main_thread = 132, .registry = 136, \
		.hook_function = 216, .panic_function = 232, \
		.current_thread = 248, .jit_base = 252 \
	}

#define GLOBAL_32_2020_07_TARANTOOL \
	{ \
		.alloc_function = 48, .alloc_data = 56, .gc_total = 64, \
		.gc_pause = 116, .gc_step_multiplier = 112, \
		.hook_mask = 157, .vmstate = 120, .main_thread = 160, \
		.registry = 168, .hook_function = 248, \
		.panic_function = 264, .current_thread = 280, \
		.jit_base = 284 \
	}


#define GLOBAL_32_2020_10_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 132, .gc_step_multiplier = 128, .hook_mask = 257, \
		.vmstate = 344, .main_thread = 264, .registry = 272, \
		.hook_function = 352, .panic_function = 368, \
		.current_thread = 384, .jit_base = 388 \
	}
#define GLOBAL_32_2020_12_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 132, .gc_step_multiplier = 128, .hook_mask = 257, \
		.vmstate = 344, .main_thread = 264, .registry = 272, \
		.hook_function = 352, .panic_function = 368, \
		.current_thread = 384, .jit_base = 392 \
	}
#define GLOBAL_32_2021_08_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 132, .gc_step_multiplier = 128, .hook_mask = 265, \
		.vmstate = 352, .main_thread = 272, .registry = 280, \
		.hook_function = 360, .panic_function = 376, \
		.current_thread = 392, .jit_base = 400 \
	}
#define GLOBAL_64_2020_10_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 172, .gc_step_multiplier = 168, .hook_mask = 321, \
		.vmstate = 432, .main_thread = 328, .registry = 336, \
		.hook_function = 440, .panic_function = 456, \
		.current_thread = 472, .jit_base = 480 \
	}
#define GLOBAL_64_2020_12_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 172, .gc_step_multiplier = 168, .hook_mask = 321, \
		.vmstate = 432, .main_thread = 328, .registry = 336, \
		.hook_function = 440, .panic_function = 456, \
		.current_thread = 472, .jit_base = 488 \
	}
#define GLOBAL_64_2021_08_TARANTOOL \
	{ \
		.alloc_function = 64, .alloc_data = 72, .gc_total = 80, \
		.gc_pause = 172, .gc_step_multiplier = 168, .hook_mask = 329, \
		.vmstate = 440, .main_thread = 336, .registry = 344, \
		.hook_function = 448, .panic_function = 464, \
		.current_thread = 480, .jit_base = 496 \
	}

#define TRACE_64_2017_05 \
	{ \
		.snapshot_count = 44, .map_count = 46, .ir = 32, \
		.snapshots = 48, .map = 56, .start_prototype = 64, \
		.start_pc = 72, .start_instruction = 80, .code_bytes = 84, \
		.code = 88, .stack_adjust = 102, .number = 104, .link = 106, \
		.root = 108 \
	}
#define TRACE_64_2019_01 \
	{ \
		.snapshot_count = 10, .map_count = 44, .ir = 32, \
		.snapshots = 48, .map = 56, .start_prototype = 64, \
		.start_pc = 72, .start_instruction = 80, .code_bytes = 84, \
		.code = 88, .stack_adjust = 102, .number = 104, .link = 106, \
		.root = 108 \
	}
#define TRACE_32_2017_05 \
	{ \
		.snapshot_count = 28, .map_count = 30, .ir = 16, \
		.snapshots = 32, .map = 40, .start_prototype = 48, \
		.start_pc = 52, .start_instruction = 56, .code_bytes = 60, \
		.code = 64, .stack_adjust = 78, .number = 80, .link = 82, \
		.root = 84 \
	}
#define TRACE_32_2019_01 \
	{ \
		.snapshot_count = 6, .map_count = 28, .ir = 16, \
		.snapshots = 32, .map = 40, .start_prototype = 48, \
		.start_pc = 52, .start_instruction = 56, .code_bytes = 60, \
		.code = 64, .stack_adjust = 78, .number = 80, .link = 82, \
		.root = 84 \
	}
#define TRACE_64_2018_12_OR \
	{ \
		.snapshot_count = 44, .map_count = 16, .ir = 32, \
		.snapshots = 56, .map = 64, .start_prototype = 48, \
		.start_pc = 72, .start_instruction = 80, .code_bytes = 84, \
		.code = 96, .stack_adjust = 106, .number = 108, .link = 110, \
		.root = 112 \
	}

#define TRACE_32_2018_12_OR \
	{ \
		.snapshot_count = 28, .map_count = 32, .ir = 16, \
		.snapshots = 40, .map = 48, .start_prototype = 36, \
		.start_pc = 56, .start_instruction = 60, .code_bytes = 64, \
		.code = 72, .stack_adjust = 82, .number = 84, .link = 86, \
		.root = 88 \
	}


#define SNAPSHOT_2017_05 \
	{ \
		.map_offset = 0, .code_offset = SNAPSHOT_NO_CODE_OFFSET, \
		.slot_count = 4, .entry_count = 6, .bytes = 8 \
	}
#define SNAPSHOT_2019_01 \
	{ \
		.map_offset = 0, .code_offset = SNAPSHOT_NO_CODE_OFFSET, \
		.slot_count = 6, .entry_count = 8, .bytes = 12 \
	}
#define SNAPSHOT_2021_03 \
	{ \
		.map_offset = 0, .code_offset = 6, .slot_count = 8, \
		.entry_count = 10, .bytes = 12 \
	}

#define JIT_64_2017_05 \
	{ \
		.traces = 392, .trace_count = 404, .exit_parent = 3032, \
		.exit_number = 3036, .code_area = 3056 \
	}
#define JIT_64_2020_05 \
	{ \
		.traces = 392, .trace_count = 404, .exit_parent = 3024, \
		.exit_number = 3028, .code_area = 3048 \
	}
#define JIT_64_2020_06 \
	{ \
		.traces = 384, .trace_count = 396, .exit_parent = 3016, \
		.exit_number = 3020, .code_area = 3040 \
	}
#define JIT_64_2021_03 \
	{ \
		.traces = 384, .trace_count = 396, .exit_parent = 3016, \
		.exit_number = 3020, .code_area = 3048 \
	}
#define JIT_32_2017_05 \
	{ \
		.traces = 368, .trace_count = 380, .exit_parent = 2480, \
		.exit_number = 2484, .code_area = 2504 \
	}
#define JIT_32_2020_05 \
	{ \
		.traces = 368, .trace_count = 380, .exit_parent = 2472, \
		.exit_number = 2476, .code_area = 2496 \
	}
#define JIT_32_2020_06 \
	{ \
		.traces = 360, .trace_count = 372, .exit_parent = 2464, \
		.exit_number = 2468, .code_area = 2488 \
	}
#define JIT_32_2021_03 \
	{ \
		.traces = 360, .trace_count = 372, .exit_parent = 2464, \
		.exit_number = 2468, .code_area = 2496 \
	}
#define JIT_64_2020_09_OR \
	{ \
		.traces = 384, .trace_count = 396, .exit_parent = 3056, \
		.exit_number = 3060, .code_area = 3080 \
	}

#define JIT_32_2020_09_OR \
	{ \
		.traces = 360, .trace_count = 372, .exit_parent = 2504, \
		.exit_number = 2508, .code_area = 2528 \
	}

#define JIT_32_2023_05_TARANTOOL \
	{ \
		.traces = 368, .trace_count = 380, .exit_parent = 2472, \
		.exit_number = 2476, .code_area = 2504 \
	}
#define JIT_64_2023_05_TARANTOOL \
	{ \
		.traces = 392, .trace_count = 404, .exit_parent = 3024, \
		.exit_number = 3028, .code_area = 3056 \
	}

#define STRING_64_2017_05 \
	{ \
		.length = 16, .bytes = 24 \
	}
#define STRING_64_2020_06 \
	{ \
		.length = 20, .bytes = 24 \
	}
#define STRING_32_2017_05 \
	{ \
		.length = 12, .bytes = 16 \
	}
#define STRING_32_2020_06 \
	{ \
		.length = 16, .bytes = 20 \
	}

const struct vm_layout vm_layouts[] = {
	{
		.name = "upstream, GC64, 2017-05 (8271c643)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 768, .gg_dispatch = 4016,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2019-01 (749e99ce)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 768, .gg_dispatch = 4016,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2020-05 (5655be45)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_05,
		.gg_global = 96, .gg_jit = 768, .gg_dispatch = 4008,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2020-06 (a44f53ac)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 96, .gg_jit = 800, .gg_dispatch = 4032,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2020-06 (ff34b48d)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_06,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 96, .gg_jit = 816, .gg_dispatch = 4048,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2020-09 (e9af1abe)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 96, .gg_jit = 824, .gg_dispatch = 4056,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2021-03 (a32aeadc)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 96, .gg_jit = 824, .gg_dispatch = 4064,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2024-04 (f5affaa6)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 96, .gg_jit = 832, .gg_dispatch = 4072,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2025-11 (68354f44)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 96, .gg_jit = 832, .gg_dispatch = 4088,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2025-11 (5c647754)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2025_11,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 96, .gg_jit = 840, .gg_dispatch = 4096,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, GC64, 2026-07 (a2ce8114)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2025_11,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 96, .gg_jit = 840, .gg_dispatch = 4096,
		.bytecode_count = 104, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2017-05 (8271c643)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 480, .gg_dispatch = 3176,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2019-01 (749e99ce)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 480, .gg_dispatch = 3176,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2020-05 (5655be45)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_05,
		.gg_global = 64, .gg_jit = 480, .gg_dispatch = 3168,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2020-06 (a44f53ac)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 64, .gg_jit = 512, .gg_dispatch = 3192,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2020-06 (ff34b48d)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 64, .gg_jit = 528, .gg_dispatch = 3208,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2020-09 (e9af1abe)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_09,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 64, .gg_jit = 536, .gg_dispatch = 3216,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2021-03 (a32aeadc)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_09,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 536, .gg_dispatch = 3224,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2021-06 (394fb626)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2021_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 552, .gg_dispatch = 3240,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2024-04 (f5affaa6)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2021_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 560, .gg_dispatch = 3248,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2025-11 (68354f44)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2021_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 560, .gg_dispatch = 3264,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2025-11 (5c647754)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2025_11,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 568, .gg_dispatch = 3272,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "upstream, not GC64, 2026-07 (a2ce8114)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2025_11,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 64, .gg_jit = 568, .gg_dispatch = 3272,
		.bytecode_count = 104, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2017-05 (81158e76)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 776, .gg_dispatch = 4024,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2018-10 (c844a613)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_64_2017_05,
		.gg_global = 104, .gg_jit = 784, .gg_dispatch = 4032,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2018-12 (520d53a8)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2018_12_OR,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 104, .gg_jit = 784, .gg_dispatch = 4032,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2019-01 (5900ea32)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2017_05,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 104, .gg_jit = 784, .gg_dispatch = 4032,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2020-09 (5980ef94)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_06,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 104, .gg_jit = 832, .gg_dispatch = 4064,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2020-09 (7c03b051)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_06,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_09_OR,
		.gg_global = 104, .gg_jit = 832, .gg_dispatch = 4104,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2020-10 (5f895f89)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_06,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 104, .gg_jit = 832, .gg_dispatch = 4096,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2020-10 (341aded9)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_06,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 112, .gg_jit = 840, .gg_dispatch = 4104,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2020-10 (fe32831a)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_06,
		.gg_global = 112, .gg_jit = 848, .gg_dispatch = 4112,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2021-06 (15e77d84)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 112, .gg_jit = 848, .gg_dispatch = 4120,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2024-04 (f5affaa6)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 112, .gg_jit = 856, .gg_dispatch = 4128,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2025-11 (68354f44)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2020_09,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 112, .gg_jit = 856, .gg_dispatch = 4144,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2025-11 (5c647754)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2025_11,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 112, .gg_jit = 864, .gg_dispatch = 4152,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, GC64, 2026-07 (a2ce8114)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2020_06,
		.global = GLOBAL_64_2025_11,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2021_03,
		.gg_global = 112, .gg_jit = 864, .gg_dispatch = 4152,
		.bytecode_count = 104, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2018-10 (c844a613)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_32_2017_05,
		.gg_global = 72, .gg_jit = 488, .gg_dispatch = 3184,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2018-12 (520d53a8)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2018_12_OR,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 72, .gg_jit = 488, .gg_dispatch = 3184,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2019-01 (5900ea32)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 72, .gg_jit = 488, .gg_dispatch = 3184,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-09 (5980ef94)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 72, .gg_jit = 536, .gg_dispatch = 3216,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-09 (7c03b051)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_09_OR,
		.gg_global = 72, .gg_jit = 536, .gg_dispatch = 3256,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-10 (5f895f89)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 72, .gg_jit = 536, .gg_dispatch = 3248,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-10 (4a1cc48a)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 72, .gg_jit = 544, .gg_dispatch = 3256,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-10 (341aded9)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 80, .gg_jit = 552, .gg_dispatch = 3264,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2020-10 (fe32831a)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2020_09,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_06,
		.gg_global = 80, .gg_jit = 560, .gg_dispatch = 3272,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2021-06 (15e77d84)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2021_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 80, .gg_jit = 576, .gg_dispatch = 3296,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2025-11 (68354f44)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2021_06,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 80, .gg_jit = 576, .gg_dispatch = 3312,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2025-11 (5c647754)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2025_11,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 80, .gg_jit = 584, .gg_dispatch = 3320,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "OpenResty, not GC64, 2026-07 (a2ce8114)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2020_06,
		.global = GLOBAL_32_2025_11,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2021_03,
		.gg_global = 80, .gg_jit = 584, .gg_dispatch = 3320,
		.bytecode_count = 104, .interpreter_state_count = 1,
	},
	{
		.name = "Debian 11, not GC64, 2017-05 (8271c643)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05_BACKPORT,
		.trace = TRACE_32_2017_05,
		.snapshot = SNAPSHOT_2017_05,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 480, .gg_dispatch = 3176,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "Debian 11, not GC64, 2019-01 (749e99ce)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2017_05_BACKPORT,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 480, .gg_dispatch = 3176,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "Tarantool 2.6, not GC64, 2020-07 (ad1d4441)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2020_07_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 512, .gg_dispatch = 3208,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "Tarantool, not GC64, 2020-10 (5f6775ae)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2020_10_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 616, .gg_dispatch = 3336,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "Tarantool, not GC64, 2020-12 (111d377d)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2020_10_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 616, .gg_dispatch = 3336,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2020-12 (0dcae51e)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2020_12_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 616, .gg_dispatch = 3336,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2021-08 (2cacfa8e)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 624, .gg_dispatch = 3344,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2022-04 (601bf760)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2017_05,
		.gg_global = 64, .gg_jit = 632, .gg_dispatch = 3352,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2022-12 (f708aa5d)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_32_2020_05,
		.gg_global = 64, .gg_jit = 632, .gg_dispatch = 3344,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2023-05 (7505e78b)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2023_05_TARANTOOL,
		.gg_global = 64, .gg_jit = 632, .gg_dispatch = 3352,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2023-11 (285a1b0a)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2023_05_TARANTOOL,
		.gg_global = 64, .gg_jit = 640, .gg_dispatch = 3360,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, not GC64, 2024-08 (4b0f1724)",
		.gc64 = false, .object = OBJECT_32, .cframe = CFRAME_32_TARANTOOL,
		.string = STRING_32_2017_05,
		.global = GLOBAL_32_2021_08_TARANTOOL,
		.trace = TRACE_32_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_32_2023_05_TARANTOOL,
		.gg_global = 64, .gg_jit = 648, .gg_dispatch = 3368,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2020-10 (5f6775ae)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2020_10_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 896, .gg_dispatch = 4168,
		.bytecode_count = 97, .interpreter_state_count = 1,
	},
	{
		.name = "Tarantool, GC64, 2020-12 (111d377d)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2020_10_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 896, .gg_dispatch = 4168,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2020-12 (0dcae51e)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2020_12_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 904, .gg_dispatch = 4176,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2021-08 (2cacfa8e)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 912, .gg_dispatch = 4184,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2022-04 (601bf760)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2017_05,
		.gg_global = 96, .gg_jit = 920, .gg_dispatch = 4192,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2022-12 (f708aa5d)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2019_01,
		.jit = JIT_64_2020_05,
		.gg_global = 96, .gg_jit = 920, .gg_dispatch = 4184,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2023-05 (7505e78b)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2023_05_TARANTOOL,
		.gg_global = 96, .gg_jit = 920, .gg_dispatch = 4192,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2023-11 (285a1b0a)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2023_05_TARANTOOL,
		.gg_global = 96, .gg_jit = 928, .gg_dispatch = 4200,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
	{
		.name = "Tarantool, GC64, 2024-08 (4b0f1724)",
		.gc64 = true, .object = OBJECT_64, .cframe = CFRAME_64_TARANTOOL,
		.string = STRING_64_2017_05,
		.global = GLOBAL_64_2021_08_TARANTOOL,
		.trace = TRACE_64_2019_01,
		.snapshot = SNAPSHOT_2021_03,
		.jit = JIT_64_2023_05_TARANTOOL,
		.gg_global = 96, .gg_jit = 936, .gg_dispatch = 4208,
		.bytecode_count = 97, .interpreter_state_count = 3,
	},
};
// clang-format on

const size_t vm_layout_count = sizeof(vm_layouts) / sizeof(vm_layouts[0]);
