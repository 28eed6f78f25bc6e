// SPDX-License-Identifier: MIT
/*
 * Layouts of LuaJIT's structures: offsets in bytes, x86-64. One row of the
 * table is a family of builds; check.c decides which one is in front of us.
 */
#ifndef VM_LAYOUT_H
#define VM_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same for all builds with 64 bit references, and for all with 32. */
struct object_layout {
	uint16_t type; /* type byte of every collectable object */
	struct {
		uint16_t status, global, base, top, stack_limit, stack;
		uint16_t cframe, stack_size;
	} thread; /* lua_State */
	struct {
		uint16_t id, environment, bytecode, upvalues, c_function;
	} function; /* GCfunc; upvalues: of Lua functions */
	struct {
		uint16_t bytecode_count, constants, size;
		uint16_t chunk_name, first_line, line_count;
		uint16_t line_info, upvalue_names, variables, bytes;
	} prototype; /* GCproto; its bytecode follows */
	struct {
		uint16_t value;
	} upvalue; /* GCupval */
	struct {
		uint16_t array, metatable, nodes, node_mask;
	} table; /* GCtab */
};

/* The VM's frame on the C stack, from its stack pointer. At its end are the
 * registers of its caller, of every build: r14, r15, rbx, rbp, return address. */
struct cframe_layout {
	uint16_t bytes, result_count, thread, pc, previous;
};

/* Addresses of C frames carry flags in their low bits. */
#define CFRAME_MASK (~UINT64_C(3))

struct string_layout {
	uint16_t length, bytes; /* GCstr; its text follows. The hash precedes
	                         * the length. */
};

struct global_layout {
	uint16_t alloc_function, alloc_data;
	uint16_t gc_total, gc_pause, gc_step_multiplier;
	uint16_t hook_mask, vmstate, main_thread, registry;
	uint16_t hook_function, panic_function, current_thread, jit_base;
}; /* global_State */

struct trace_layout {
	uint16_t snapshot_count, map_count, ir, snapshots, map;
	uint16_t start_prototype, start_pc, start_instruction;
	uint16_t code_bytes, code, stack_adjust, number, link, root;
}; /* GCtrace */

#define SNAPSHOT_NO_CODE_OFFSET 0xffff

struct snapshot_layout {
	uint16_t map_offset;
	uint16_t code_offset; /* SNAPSHOT_NO_CODE_OFFSET: not stored */
	uint16_t slot_count, entry_count, bytes;
}; /* SnapShot */

struct jit_layout {
	uint16_t traces, trace_count; /* array of traces and its size */
	uint16_t exit_parent, exit_number;
	uint16_t code_area; /* newest area; its size is 24 behind */
};                          /* jit_State */

struct vm_layout {
	const char *name; /* fork, kind of reference, first month (commit) */
	bool gc64;        /* 64 bit references and two-slot frames */
	struct object_layout object;
	struct cframe_layout cframe;
	struct string_layout string;
	struct global_layout global;
	struct trace_layout trace;
	struct snapshot_layout snapshot;
	struct jit_layout jit;
	/* Within GG_State, which starts with the main lua_State. */
	uint16_t gg_global, gg_jit, gg_dispatch;
	/* Number of bytecodes; the function headers are the last eight. */
	uint16_t bytecode_count;
	/* VM states that all mean the interpreter, the first ones. */
	uint16_t interpreter_state_count;
};

extern const struct vm_layout vm_layouts[];
extern const size_t vm_layout_count;

#define JIT_CODE_AREA_BYTES_OFFSET 24

/* Object type bytes; a value's type is the complement. */
#define TYPE_NIL       0
#define TYPE_STRING    4
#define TYPE_THREAD    6
#define TYPE_PROTOTYPE 7
#define TYPE_FUNCTION  8
#define TYPE_TRACE     9
#define TYPE_TABLE     11

/* A node of a table's hash part: value and key, and a reference to the next
 * one, in every build. */
#define NODE_KEY   8
#define NODE_BYTES 24

/* Function ids: a Lua function, a C function, else a fast function. */
#define FUNCTION_LUA 0
#define FUNCTION_C   1

/* Bytecodes, the same in every build. */
#define BYTECODE_BYTES 4
#define BYTECODE_MOV   18
#define BYTECODE_UGET  45
#define BYTECODE_GGET  54
#define BYTECODE_TGETS 57
#define BYTECODE_CALLM 65
#define BYTECODE_CALL  66
#define BYTECODE_ITERN 70
#define BYTECODE_RETM  73
#define BYTECODE_RET1  76
#define BYTECODE_JLOOP 87

/* FUNCC, "call a C function", of a layout. */
static inline uint8_t bytecode_funcc(const struct vm_layout *layout)
{
	return (uint8_t)(layout->bytecode_count - 2);
}

/* IR instruction "collectable constant"; the object is in the next slot. */
#define IR_KGC 24

/* VM state word: a trace number, or the complement of one of these, once the
 * states of the interpreter are one: see vm_read_state(). */
#define VMSTATE_INTERP 0
#define VMSTATE_C      1
#define VMSTATE_GC     2
#define VMSTATE_EXIT   3
#define VMSTATE_RECORD 4
#define VMSTATE_OPT    5
#define VMSTATE_ASM    6

/* What traces take of the stack below the C frame, at least. */
#define TRACE_FRAME_BYTES 16

#endif
