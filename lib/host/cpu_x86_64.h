// SPDX-License-Identifier: MIT
/*
 * The registers that unwinding on x86-64 needs, and their DWARF numbers.
 * Everything that depends on the CPU is here, in unwind_x86_64_sig.c and in
 * vm/vm_frame_x86_64_sig.c.
 */
#ifndef HOST_CPU_X86_64_H
#define HOST_CPU_X86_64_H

#include <stdint.h>
#include <ucontext.h>

/* Registers that a callee saves: the only ones known outside the innermost
 * frame. */
enum saved_register {
	SAVED_RBX,
	SAVED_RBP,
	SAVED_R12,
	SAVED_R13,
	SAVED_R14,
	SAVED_R15,
	SAVED_COUNT
};

#define CPU_DWARF_SP             7
#define CPU_DWARF_RETURN_ADDRESS 16

struct cpu_registers {
	uint64_t ip;
	uint64_t sp;
	uint64_t saved[SAVED_COUNT];
};

/* enum saved_register of a DWARF register number, -1 if it is none. */
static inline int cpu_saved_of_dwarf(uint64_t dwarf)
{
	switch (dwarf) {
	case 3:
		return SAVED_RBX;
	case 6:
		return SAVED_RBP;
	case 12:
		return SAVED_R12;
	case 13:
		return SAVED_R13;
	case 14:
		return SAVED_R14;
	case 15:
		return SAVED_R15;
	default:
		return -1;
	}
}

static inline void cpu_registers_read(struct cpu_registers *registers,
                                      const ucontext_t *context)
{
	const greg_t *gregs = context->uc_mcontext.gregs;

	registers->ip = (uint64_t)gregs[REG_RIP];
	registers->sp = (uint64_t)gregs[REG_RSP];
	registers->saved[SAVED_RBX] = (uint64_t)gregs[REG_RBX];
	registers->saved[SAVED_RBP] = (uint64_t)gregs[REG_RBP];
	registers->saved[SAVED_R12] = (uint64_t)gregs[REG_R12];
	registers->saved[SAVED_R13] = (uint64_t)gregs[REG_R13];
	registers->saved[SAVED_R14] = (uint64_t)gregs[REG_R14];
	registers->saved[SAVED_R15] = (uint64_t)gregs[REG_R15];
}

#endif
