// SPDX-License-Identifier: MIT
/*
 * The registers that unwinding on aarch64 needs, and their DWARF numbers. The
 * VM's frames are not unwound on this CPU yet (vm/vm_frame_*_sig.c), so only the
 * native unwinder is built, by tests/aarch64/check-aarch64.sh.
 */
#ifndef HOST_CPU_AARCH64_H
#define HOST_CPU_AARCH64_H

#include <stdint.h>
#include <ucontext.h>

/* Registers that a callee saves: x19 to x28, the frame pointer, and the link
 * register, which is known of the innermost frame alone. */
enum saved_register {
	SAVED_X19,
	SAVED_X29 = SAVED_X19 + 10,
	SAVED_X30,
	SAVED_COUNT
};

#define CPU_DWARF_SP             31
#define CPU_DWARF_RETURN_ADDRESS 30
#define CPU_DWARF_EH_DATA        0 /* x0 */

/* Return addresses have rules as other registers do. */
#define CPU_RETURN_ADDRESS_OFFSET 0

#define CPU_FRAME_POINTER SAVED_X29

struct cpu_registers {
	uint64_t ip;
	uint64_t sp;
	uint64_t saved[SAVED_COUNT];
};

/* enum saved_register of a DWARF register number, -1 if it is none. */
static inline int cpu_saved_of_dwarf(uint64_t dwarf)
{
	return dwarf >= 19 && dwarf <= 30 ? (int)(dwarf - 19) : -1;
}

static inline void cpu_registers_read(struct cpu_registers *registers,
                                      const ucontext_t *context)
{
	int i;

	registers->ip = context->uc_mcontext.pc;
	registers->sp = context->uc_mcontext.sp;
	for (i = 0; i < SAVED_COUNT; i++)
		registers->saved[i] = context->uc_mcontext.regs[19 + i];
}

#endif
