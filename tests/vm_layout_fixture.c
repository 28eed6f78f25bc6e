// SPDX-License-Identifier: MIT
/*
 * A library whose debug information has the structures that vm-layout-probe
 * looks for, with offsets as no LuaJIT has them. It is compiled with -g and
 * never run.
 */
#include <stdint.h>

#define PAD(name, bytes) char name[bytes]

typedef struct GCRef {
	uint64_t gcptr64;
} GCRef;

typedef struct lua_State {
	PAD(pad, 9);
	uint8_t gct, dummy_ffid, status;
	PAD(pad2, 4);
	GCRef glref;
	PAD(pad3, 8);
	uint64_t base, top, maxstack, stack;
	PAD(pad4, 16);
	uint64_t cframe;
	uint32_t stacksize;
} lua_State;

typedef struct GCproto {
	PAD(pad, 9);
	uint8_t gct, numparams, framesize;
	uint32_t sizebc;
	PAD(pad2, 16);
	uint64_t k, uv;
	uint32_t sizekgc, sizekn, sizept;
	PAD(pad3, 4);
	uint64_t chunkname;
	uint32_t firstline, numline;
	uint64_t lineinfo, uvinfo, varinfo;
} GCproto;

typedef struct GCfuncC {
	PAD(pad, 10);
	uint8_t ffid;
	PAD(pad2, 5);
	uint64_t env;
	PAD(pad3, 8);
	uint64_t pc, f;
} GCfuncC;

typedef struct GCfuncL {
	PAD(pad, 40);
	uint64_t uvptr[1];
} GCfuncL;

typedef struct GCupval {
	PAD(pad, 32);
	uint64_t v;
} GCupval;

typedef struct GCtab {
	PAD(pad, 16);
	uint64_t array, gclist, metatable, node;
	uint32_t asize, hmask;
} GCtab;

typedef struct GCstr {
	PAD(pad, 20);
	uint32_t len;
} GCstr;

typedef struct GCtrace {
	PAD(pad, 10);
	uint16_t nsnap;
	PAD(pad2, 20);
	uint64_t ir;
	PAD(pad3, 4);
	uint32_t nsnapmap;
	uint64_t snap, snapmap, startpt, startpc;
	uint32_t startins, szmcode;
	uint64_t mcode;
	PAD(pad4, 6);
	uint16_t spadjust, traceno, link, root;
} GCtrace;

typedef struct SnapShot {
	uint32_t mapofs;
	uint16_t ref, mcofs;
	uint8_t nslots, topslot, nent, count;
} SnapShot;

/* Fields in a structure, and in unnamed ones, are found, too. */
typedef struct global_State {
	uint64_t allocf, allocd;
	struct {
		uint64_t total, threshold;
		uint32_t stepmul, pause;
	} gc;
	uint8_t hookmask;
	volatile int32_t vmstate;
	union {
		GCRef mainthref;
		uint64_t other;
	};
	uint64_t registrytv, hookf, panic;
	GCRef cur_L, jit_base;
} global_State;

typedef struct jit_State {
	PAD(pad, 100);
	uint32_t sizetrace;
	uint64_t trace;
	uint32_t parent, exitno;
	uint64_t mcarea, mctop, mcbot, szmcarea;
} jit_State;

typedef struct GG_State {
	lua_State L;
	global_State g;
	jit_State J;
	uint64_t dispatch[4];
} GG_State;

typedef enum {
	BC_ISLT,
	BC__MAX = 99
} BCOp;

/* The states of the interpreter are three, as in Tarantool's fork. */
enum {
	LJ_VMST_INTERP,
	LJ_VMST_LFUNC,
	LJ_VMST_FFUNC,
	LJ_VMST_CFUNC,
	LJ_VMST_GC,
	LJ_VMST_EXIT,
	LJ_VMST_RECORD,
	LJ_VMST_OPT,
	LJ_VMST_ASM,
	LJ_VMST__MAX
};

/* Where the VM starts, with the unwind rule of its frame. */
#ifndef FRAME_BYTES
#define FRAME_BYTES 96
#endif
#define TEXT_OF(value) #value
#define TEXT(value)    TEXT_OF(value)
// clang-format off
__asm__(".text\n"
        "lj_vm_asm_begin:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset " TEXT(FRAME_BYTES) "\n"
        "nop\n"
        ".cfi_endproc\n");
// clang-format on

extern GG_State fixture_state;
extern GCproto fixture_prototype;
extern GCfuncC fixture_function;
extern GCfuncL fixture_lua_function;
extern GCupval fixture_upvalue;
extern GCtab fixture_table;
extern GCstr fixture_string;
extern GCtrace fixture_trace;
extern SnapShot fixture_snapshot;
extern BCOp fixture_opcode;
extern int fixture_vm_state;
GG_State fixture_state;
GCproto fixture_prototype;
GCfuncC fixture_function;
GCfuncL fixture_lua_function;
GCupval fixture_upvalue;
GCtab fixture_table;
GCstr fixture_string;
#ifndef WITHOUT_TRACE
GCtrace fixture_trace;
#endif
SnapShot fixture_snapshot;
BCOp fixture_opcode;
int fixture_vm_state = LJ_VMST__MAX;
