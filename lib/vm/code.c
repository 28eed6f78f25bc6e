// SPDX-License-Identifier: MIT
/*
 * Finds the VM's machine code by the shape of its unwind rule, which all
 * builds since 2017 share. Works on stripped libraries.
 */
#include "code.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "../host/elf_image.h"
#include "../host/unwind_table.h"
#include "../lmisclib.h"

/* The smallest VM seen has 14 kB, the second largest function 1 kB. */
#define VM_CODE_BYTES_MIN 10000

/* push rbx, r15, r14; sub rsp, SPACE: behind the optional push rbp. */
static const uint8_t prologue_bytes[VM_PROLOGUE_BYTES] = {
	0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0};
#define PROLOGUE_SPACE 8
/* add rsp, SPACE; pop r14, r15, rbx, rbp; ret */
static const uint8_t epilogue_bytes[VM_EPILOGUE_BYTES] = {
	0x48, 0x83, 0xc4, 0, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3};
#define EPILOGUE_SPACE 3
/* What the four registers and the return address take of the frame. */
#define PUSHED_BYTES 40
/* mov [rbp+lua_State.cframe], rsp or rcx; the offset follows. */
static const uint8_t link_bytes[] = {0x48, 0x89, 0x65};
static const uint8_t unlink_bytes[] = {0x48, 0x89, 0x4d};
/* mov [rbp-8], r15; mov [rbp-16], r14: in the exit handler */
static const uint8_t exit_bytes[] = {0x4c, 0x89, 0x7d, 0xf8,
                                     0x4c, 0x89, 0x75, 0xf0};
/* push r13, r12, r11, r10: its first instructions; mov rsp, rcx: where it is
 * back on the C frame. */
static const uint8_t exit_start_bytes[] = {0x41, 0x55, 0x41, 0x54,
                                           0x41, 0x53, 0x41, 0x52};
static const uint8_t exit_end_bytes[] = {0x48, 0x89, 0xcc};

/* lea rdx, [rdx+rcx*8-16]: from the base of a function to its caller's; jmp
 * [r14+rbp*8]: there the next instruction is executed. mov eax, 2: where fast
 * functions with one result go on. */
static const uint8_t caller_base_bytes[] = {0x48, 0x8d, 0x54, 0xca, 0xf0};
static const uint8_t dispatch_bytes[] = {0x41, 0xff, 0x24, 0xee};
static const uint8_t one_result_bytes[] = {0xb8, 2, 0, 0, 0};

/* The results are moved this close before, and missing ones are filled in this
 * close behind the dispatch. */
#define RESULTS_DISTANCE_MAX    58
#define ONE_RESULT_DISTANCE_MAX 40
#define DISPATCH_DISTANCE_MAX   96
#define FILL_BYTES              18

/* They are this close to the stores. */
#define EXIT_START_DISTANCE_MAX 64
#define EXIT_END_DISTANCE_MAX   256

/* The stores are this close to prologue and epilogue. */
#define LINK_DISTANCE_MAX   160
#define UNLINK_DISTANCE_MAX 80

struct known_code {
	struct vm_code code;
	struct known_code *next;
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known_code *known;

static bool is_cframe_bytes(int32_t bytes)
{
	size_t i;

	for (i = 0; i < vm_layout_count; i++)
		if (vm_layouts[i].cframe.bytes == bytes)
			return true;
	return false;
}

static bool has_vm_rule(const struct unwind_rule *rule)
{
	return !(rule->flags & ~UNWIND_FUNCTION) &&
	       rule->cfa_register == SAVED_COUNT &&
	       is_cframe_bytes(rule->cfa_offset) &&
	       rule->saved[SAVED_RBP] == -2 && rule->saved[SAVED_RBX] == -3 &&
	       rule->saved[SAVED_R15] == -4 && rule->saved[SAVED_R14] == -5;
}

static bool is_cframe_offset(uint8_t byte)
{
	size_t i;

	for (i = 0; i < vm_layout_count; i++)
		if (vm_layouts[i].object.thread.cframe == byte)
			return true;
	return false;
}

static void add_unlinked(struct vm_code *code, uint64_t start, uint64_t end)
{
	code->unlinked[code->unlinked_count].start = start;
	code->unlinked[code->unlinked_count++].end = end;
}

static void find_link(struct vm_code *code, uint64_t prologue)
{
	const uint8_t *at = (const uint8_t *)prologue + sizeof(prologue_bytes);
	const uint8_t *end = at + LINK_DISTANCE_MAX;

	if ((uint64_t)end > code->end)
		end = (const uint8_t *)code->end;
	for (; at + sizeof(link_bytes) < end; at++) {
		if (memcmp(at, link_bytes, sizeof(link_bytes)) ||
		    !is_cframe_offset(at[sizeof(link_bytes)]))
			continue;
		add_unlinked(code, prologue + sizeof(prologue_bytes),
		             (uint64_t)at);
		return;
	}
}

static void find_unlink(struct vm_code *code, uint64_t epilogue)
{
	const uint8_t *at = (const uint8_t *)epilogue - sizeof(unlink_bytes);
	const uint8_t *end = at - UNLINK_DISTANCE_MAX;

	if ((uint64_t)end < code->start)
		end = (const uint8_t *)code->start;
	while (--at > end) {
		if (memcmp(at, unlink_bytes, sizeof(unlink_bytes)) ||
		    !is_cframe_offset(at[sizeof(unlink_bytes)]))
			continue;
		add_unlinked(code, (uint64_t)at + sizeof(unlink_bytes) + 1,
		             epilogue);
		return;
	}
}

static void find_exit_handler(struct vm_code *code, uint64_t stores)
{
	const uint8_t *first = (const uint8_t *)stores;
	const uint8_t *last = first;
	const uint8_t *end = last + EXIT_END_DISTANCE_MAX;

	code->exit_number_ready = stores;
	if ((uint64_t)end > code->end)
		end = (const uint8_t *)code->end;
	while (memcmp(first, exit_start_bytes, sizeof(exit_start_bytes)))
		if (stores - (uint64_t)--first > EXIT_START_DISTANCE_MAX ||
		    (uint64_t)first < code->start)
			return;
	while (last + sizeof(exit_end_bytes) <= end &&
	       memcmp(last, exit_end_bytes, sizeof(exit_end_bytes)))
		last++;
	if (last + sizeof(exit_end_bytes) > end)
		return;
	code->exit_start = (uint64_t)first;
	code->exit_end = (uint64_t)last + sizeof(exit_end_bytes);
}

/* First occurrence in [at, end); NULL: none. */
static const uint8_t *find_bytes(const uint8_t *at, const uint8_t *end,
                                 const uint8_t *bytes, size_t count)
{
	return end > at ? memmem(at, (size_t)(end - at), bytes, count) : NULL;
}

static void add_return(struct vm_code *code, const uint8_t *base_set)
{
	const uint8_t *behind = base_set + sizeof(caller_base_bytes);
	const uint8_t *dispatch =
		find_bytes(behind, behind + DISPATCH_DISTANCE_MAX,
	                   dispatch_bytes, sizeof(dispatch_bytes));
	const uint8_t *start =
		find_bytes(base_set - ONE_RESULT_DISTANCE_MAX, base_set,
	                   one_result_bytes, sizeof(one_result_bytes));
	struct vm_return *area;

	if (!dispatch || code->return_count == VM_RETURNS_MAX)
		return;
	if (!start)
		start = base_set - RESULTS_DISTANCE_MAX;
	area = &code->returns[code->return_count++];
	area->start = (uint64_t)start;
	area->base_set = (uint64_t)behind;
	area->dispatched = (uint64_t)dispatch + sizeof(dispatch_bytes);
	area->end = area->dispatched + FILL_BYTES;
}

static void find_returns(struct vm_code *code)
{
	const uint8_t *at = (const uint8_t *)code->start + RESULTS_DISTANCE_MAX;
	const uint8_t *end =
		(const uint8_t *)code->end - DISPATCH_DISTANCE_MAX - FILL_BYTES;

	while ((at = find_bytes(at, end, caller_base_bytes,
	                        sizeof(caller_base_bytes)))) {
		add_return(code, at);
		at += sizeof(caller_base_bytes);
	}
}

/* Where the unwind rule of the VM does not hold, or the VM does not know of its
 * frame. */
static void find_frame_edges(struct vm_code *code)
{
	uint8_t space = (uint8_t)(code->cframe_bytes - PUSHED_BYTES);
	uint8_t prologue[VM_PROLOGUE_BYTES], epilogue[VM_EPILOGUE_BYTES];
	uint64_t address;
	size_t i;

	memcpy(prologue, prologue_bytes, sizeof(prologue));
	prologue[PROLOGUE_SPACE] = space;
	memcpy(epilogue, epilogue_bytes, sizeof(epilogue));
	epilogue[EPILOGUE_SPACE] = space;
	for (address = code->start;
	     address + sizeof(epilogue_bytes) <= code->end; address++) {
		const void *bytes = (const void *)address;

		if (!memcmp(bytes, prologue, sizeof(prologue)) &&
		    code->prologue_count < VM_PROLOGUES_MAX)
			code->prologues[code->prologue_count++] = address;
		if (!memcmp(bytes, epilogue, sizeof(epilogue)) &&
		    code->epilogue_count < VM_EPILOGUES_MAX)
			code->epilogues[code->epilogue_count++] = address;
		if (!memcmp(bytes, exit_bytes, sizeof(exit_bytes)))
			find_exit_handler(code, address);
	}
	for (i = 0; i < code->prologue_count; i++)
		find_link(code, code->prologues[i]);
	for (i = 0; i < code->epilogue_count; i++)
		find_unlink(code, code->epilogues[i]);
}

static void read_build_id(struct vm_code *code)
{
	uint8_t bytes[BUILD_ID_BYTES_MAX];
	size_t count = elf_image_build_id_at(code->start, bytes), i;

	for (i = 0; i < count; i++)
		sprintf(code->build_id + 2 * i, "%02x", bytes[i]);
}

/* Size of the frame that the VM's code at the address has by the rule for all of
 * it; 0: that is not VM code. */
static uint16_t find_cframe_bytes(uint64_t address)
{
	const struct unwind_rule *rule =
		unwind_find_rule(unwind_tables_enter(), address);
	uint16_t bytes =
		rule && has_vm_rule(rule) ? (uint16_t)rule->cfa_offset : 0;

	unwind_tables_leave();
	return bytes;
}

static struct known_code *find_new(uint64_t address, struct error *error)
{
	uint16_t cframe_bytes = find_cframe_bytes(address);
	struct known_code *found;
	uint64_t start, end, ffi_start;

	if (!cframe_bytes || !unwind_find_function(address, &start, &end) ||
	    end - start < VM_CODE_BYTES_MIN) {
		struct vm_code unknown = {.start = address};

		read_build_id(&unknown);
		error_set(error, PROFILE_ERRUSE, EINVAL,
		          "the code that called this function is not a LuaJIT "
		          "interpreter that is known (build id %s; its unwind "
		          "rule is not that of LuaJIT 2.1 for x86-64)",
		          unknown.build_id[0] ? unknown.build_id : "missing");
		return NULL;
	}
	found = calloc(1, sizeof(*found));
	if (!found) {
		error_set(error, PROFILE_ERRMEM, ENOMEM, "out of memory");
		return NULL;
	}
	found->code.start = start;
	found->code.end = end;
	found->code.cframe_bytes = cframe_bytes;
	if (!unwind_find_function(end, &ffi_start, &found->code.ffi_call_end) ||
	    ffi_start != end)
		found->code.ffi_call_end = end;
	find_frame_edges(&found->code);
	find_returns(&found->code);
	read_build_id(&found->code);
	return found;
}

static const char *name_in(const struct vm_code *code, uint64_t address,
                           uint64_t *start)
{
	if (address >= code->start && address < code->end) {
		*start = code->start;
		return "lj_vm interpreter";
	}
	if (address >= code->end && address < code->ffi_call_end) {
		*start = code->end;
		return "lj_vm ffi call";
	}
	return NULL;
}

const char *vm_code_name(uint64_t address, uint64_t *start)
{
	const struct known_code *code;
	const char *name = NULL;

	pthread_mutex_lock(&known_lock);
	for (code = known; code && !name; code = code->next)
		name = name_in(&code->code, address, start);
	pthread_mutex_unlock(&known_lock);
	return name;
}

const struct vm_code *vm_code_find(uint64_t address, struct error *error)
{
	struct known_code *found;

	pthread_mutex_lock(&known_lock);
	for (found = known; found; found = found->next)
		if (address >= found->code.start && address < found->code.end)
			break;
	if (!found) {
		found = find_new(address, error);
		if (found) {
			found->next = known;
			known = found;
		}
	}
	pthread_mutex_unlock(&known_lock);
	return found ? &found->code : NULL;
}
