// SPDX-License-Identifier: MIT
/*
 * Reading LuaJIT's objects through loads that cannot fault. Everything here
 * may be handed any address and says whether it found what it looks for.
 * Async-signal-safe.
 */
#ifndef VM_OBJECT_SIG_H
#define VM_OBJECT_SIG_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"
#include "../load_sig.h"

/* Pointer part and type part of a tagged 64 bit stack slot. */
#define SLOT_POINTER_MASK ((UINT64_C(1) << 47) - 1)
#define SLOT_TAG_SHIFT    47
#define SLOT_TAG_FUNCTION 0x1fff7
#define SLOT_TAG_THREAD   0x1fff9

struct lua_function {
	uint64_t prototype;  /* id FUNCTION_LUA */
	uint64_t c_function; /* else: its C entry (of a fast function in
	                      * assembler: of its fallback) */
	uint8_t id;          /* FUNCTION_LUA, FUNCTION_C or a fast function */
};

/* The stack of a coroutine: [start, end), slots of 8 bytes. */
struct lua_stack {
	uint64_t thread; /* address of the lua_State */
	uint64_t start, end;
};

/* PCs and other pointers are never this small. */
#define POINTER_MIN 65536

/* A frame is named by the address of the slot below its base. */
struct lua_frame {
	uint64_t function; /* the function, or the thread for a dummy frame */
	uint64_t link;     /* how it was called; low bits: enum link_type */
};

enum link_type {
	LINK_LUA = 0, /* and 4: called by a Lua function, link is return PC */
	LINK_C = 1,
	LINK_CONTINUATION = 2,
	LINK_VARARG = 3,
	LINK_C_PROTECTED = 5,
	LINK_PCALL = 6,
	LINK_PCALL_HOOK = 7,
};

static inline enum link_type link_type(uint64_t link)
{
	return (link & 3) == LINK_LUA ? LINK_LUA : (enum link_type)(link & 7);
}

static inline bool load_reference(const struct vm_layout *layout,
                                  uint64_t address, uint64_t *reference)
{
	uint32_t narrow;

	if (layout->gc64)
		return load_u64(address, reference);
	if (!load_u32(address, &narrow))
		return false;
	*reference = narrow;
	return true;
}

static inline bool is_object(const struct vm_layout *layout, uint64_t address,
                             uint8_t type)
{
	uint8_t found;

	return !(address & 7) &&
	       load_u8(address + layout->object.type, &found) && found == type;
}

/* Slots between the slot of the function and the base. */
static inline uint64_t frame_slots(const struct vm_layout *layout)
{
	return layout->gc64 ? 2 : 1;
}

/* Address of the outermost frame of a stack; it is a dummy. */
static inline uint64_t stack_bottom(const struct vm_layout *layout,
                                    const struct lua_stack *stack)
{
	return stack->start + 8 * (frame_slots(layout) - 1);
}

bool lua_function_read(const struct vm_layout *layout, uint64_t address,
                       struct lua_function *function);

bool lua_stack_read(const struct vm_layout *layout, uint64_t thread,
                    struct lua_stack *stack);

bool lua_frame_read(const struct vm_layout *layout, uint64_t frame,
                    struct lua_frame *contents);

/* The frame below; 0 if that cannot be told. */
uint64_t lua_frame_previous(const struct vm_layout *layout, uint64_t frame,
                            uint64_t link);

/* Does the link of a frame lead to another plausible frame? */
bool lua_link_is_sound(const struct vm_layout *layout,
                       const struct lua_stack *stack, uint64_t frame,
                       uint64_t link);

/* The value of a continuation that marks an FFI callback. */
#define CONTINUATION_FFI_CALLBACK 1

/* Where the function goes on that the continuation frame above has interrupted.
 * *continuation: what is to be done with the result. */
bool lua_continuation_read(const struct vm_layout *layout, uint64_t frame,
                           uint64_t *continuation, uint64_t *pc);

/* Number of the instruction before pc, 0 for the function header. False if pc
 * is not in the bytecode of this prototype. */
bool prototype_position(const struct vm_layout *layout, uint64_t prototype,
                        uint64_t pc, uint32_t *position);

/* Line of an instruction; 0 if the prototype has no line information. */
uint32_t prototype_line(const struct vm_layout *layout, uint64_t prototype,
                        uint32_t position);

/* Is the coroutine the first item of a table? Where the table is weak, one that
 * was collected is not, whatever has its address by now. */
bool table_holds_thread(const struct vm_layout *layout, uint64_t table,
                        uint64_t thread);

/* If pc is behind a call instruction: the register of the called function. */
bool pc_behind_call(uint64_t pc, uint32_t *base_register);

#endif
