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
#define CPU_DWARF_EH_DATA        0 /* rax */

/* The call instruction leaves the return address there, from the CFA. */
#define CPU_RETURN_ADDRESS_OFFSET (-8)

/* What a frame pointer would be in. */
#define CPU_FRAME_POINTER SAVED_RBP

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

/* The registers at this place, for a walk that begins here; the other fields of
 * the context are not set. */
static inline __attribute__((always_inline)) void
cpu_context_capture(ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;

	__asm__ volatile("leaq 0f(%%rip), %%rax\n\t"
	                 "movq %%rax, %0\n0:\tmovq %%rsp, %1\n\t"
	                 "movq %%rbx, %2\n\tmovq %%rbp, %3\n\t"
	                 "movq %%r12, %4\n\tmovq %%r13, %5\n\t"
	                 "movq %%r14, %6\n\tmovq %%r15, %7"
	                 : "=m"(gregs[REG_RIP]), "=m"(gregs[REG_RSP]),
	                   "=m"(gregs[REG_RBX]), "=m"(gregs[REG_RBP]),
	                   "=m"(gregs[REG_R12]), "=m"(gregs[REG_R13]),
	                   "=m"(gregs[REG_R14]), "=m"(gregs[REG_R15])
	                 :
	                 : "rax", "memory");
	gregs[REG_RDX] = 0;
}

#endif
