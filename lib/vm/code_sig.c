// SPDX-License-Identifier: MIT
/*
 * Where the VM's own code builds and leaves its C frame. Runs in the signal
 * handler.
 */
#include "code.h"

#include <string.h>

#define PUSH_RBP 0x55
/* mov [rdx-8], rbx: the PC becomes the link of the called function's frame. */
#define STORE_LINK 0xf85a8948

/* Bytes on the stack, return address included, at an offset into the shared
 * part of the prologues: push rbp is done, rbx, r15, r14 follow. */
static int prologue_distance(uint64_t offset)
{
	if (offset == 0)
		return 16;
	if (offset < 3)
		return 24;
	return offset < 5 ? 32 : 40;
}

static int epilogue_distance(uint64_t offset)
{
	if (offset <= 4)
		return 40;
	if (offset <= 6)
		return 32;
	if (offset <= 8)
		return 24;
	return offset == 9 ? 16 : 8;
}

int vm_code_frame_edge(const struct vm_code *code, uint64_t ip)
{
	size_t i;

	for (i = 0; i < code->prologue_count; i++) {
		uint64_t prologue = code->prologues[i];

		if (ip == prologue - 1 && *(const uint8_t *)ip == PUSH_RBP)
			return 8;
		if (ip >= prologue && ip < prologue + VM_PROLOGUE_BYTES)
			return prologue_distance(ip - prologue);
	}
	for (i = 0; i < code->epilogue_count; i++) {
		uint64_t offset = ip - code->epilogues[i];

		if (offset > 0 && offset < VM_EPILOGUE_BYTES)
			return epilogue_distance(offset);
	}
	return 0;
}

bool vm_code_is_unlinked(const struct vm_code *code, uint64_t ip)
{
	size_t i;

	for (i = 0; i < code->unlinked_count; i++)
		if (ip >= code->unlinked[i].start &&
		    ip <= code->unlinked[i].end)
			return true;
	return false;
}

bool vm_code_exits(const struct vm_code *code, uint64_t ip)
{
	return ip >= code->exit_start && ip < code->exit_end;
}

bool vm_code_links(const struct vm_code *code, uint64_t ip)
{
	uint32_t instruction;

	if (ip < code->start || ip > code->end - sizeof(instruction))
		return false;
	memcpy(&instruction, (const void *)ip, sizeof(instruction));
	return instruction == STORE_LINK;
}

bool vm_code_moves_results(const struct vm_code *code, uint64_t ip)
{
	size_t i;

	for (i = 0; i < code->return_count; i++) {
		const struct vm_return *area = &code->returns[i];

		if ((ip >= area->start && ip < area->base_set) ||
		    (ip >= area->dispatched && ip < area->end))
			return true;
	}
	return false;
}

bool vm_code_goes_on(const struct vm_code *code, uint64_t ip)
{
	size_t i;

	for (i = 0; i < code->return_count; i++)
		if (ip >= code->returns[i].base_set &&
		    ip < code->returns[i].dispatched)
			return true;
	return false;
}
