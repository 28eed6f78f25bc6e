// SPDX-License-Identifier: MIT
/*
 * One step of native unwinding on aarch64. Runs in the signal handler.
 */
#include "unwind_sig.h"

#include <string.h>
#include <ucontext.h>

#include "../load_sig.h"

/* Signed return addresses carry their signature above the address. */
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)

/* struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, then ucontext. */
#define SIGNAL_INFO_BYTES 128

/* mov x8, #139 (rt_sigreturn); svc #0 */
#define SIGRETURN_CODE UINT64_C(0xd4000001d2801168)

static bool compute_cfa(const struct unwind_rule *rule,
                        const struct cpu_registers *registers, uint64_t *cfa)
{
	*cfa = rule->cfa_register == SAVED_COUNT
	               ? registers->sp
	               : registers->saved[rule->cfa_register];
	*cfa += (uint64_t)(int64_t)rule->cfa_offset;
	return !(rule->flags & UNWIND_CFA_LOAD) || load_u64(*cfa, cfa);
}

bool unwind_signal_context(uint64_t sp, ucontext_t *context)
{
	return load_bytes(context, sp + SIGNAL_INFO_BYTES,
	                  offsetof(ucontext_t, uc_mcontext) +
	                          offsetof(mcontext_t, __reserved));
}

static enum unwind_result unwind_signal(struct cpu_registers *registers)
{
	ucontext_t context;

	if (!unwind_signal_context(registers->sp, &context))
		return UNWIND_BAD_READ;
	cpu_registers_read(registers, &context);
	return UNWIND_INTERRUPTED;
}

/* The trampoline has no rule that unwinders can use: its code tells it. */
static bool is_trampoline(const struct cpu_registers *registers)
{
	uint64_t code;

	return load_u64(registers->ip, &code) && code == SIGRETURN_CODE;
}

enum unwind_result unwind_step(const struct unwind_rule *rule,
                               struct cpu_registers *registers)
{
	struct cpu_registers caller = *registers;
	uint64_t cfa;
	int i;

	if (!rule || rule->flags & UNWIND_SIGNAL)
		return is_trampoline(registers) ? unwind_signal(registers)
		                                : UNWIND_NO_TABLE;
	if (rule->flags & UNWIND_OUTERMOST)
		return UNWIND_END;
	if (!compute_cfa(rule, registers, &cfa))
		return UNWIND_BAD_READ;
	/* A leaf function may use no stack, but only the innermost one can. */
	if (cfa < registers->sp ||
	    (rule->saved[SAVED_X30] == UNWIND_SAVED_SAME &&
	     !registers->saved[SAVED_X30]))
		return UNWIND_NO_PROGRESS;
	for (i = 0; i < SAVED_COUNT; i++) {
		int64_t offset = rule->saved[i] * INT64_C(8);

		if (rule->saved[i] != UNWIND_SAVED_SAME &&
		    !load_u64(cfa + (uint64_t)offset, &caller.saved[i]))
			return UNWIND_BAD_READ;
	}
	caller.ip = caller.saved[SAVED_X30] & ADDRESS_MASK;
	caller.sp = cfa;
	caller.saved[SAVED_X30] = 0;
	if (!caller.ip)
		return UNWIND_END;
	*registers = caller;
	return UNWIND_CALLER;
}

#define INSTRUCTION_BYTES 4

bool cpu_follows_call(uint64_t address)
{
	uint32_t code;

	if (!load_u32(address - INSTRUCTION_BYTES, &code))
		return false;
	return (code & 0xfc000000) == 0x94000000 || /* bl */
	       (code & 0xfffffc1f) == 0xd63f0000 || /* blr */
	       (code & 0xfefff800) == 0xd63f0800;   /* blraa and the like */
}

bool cpu_find_fresh_return(const struct cpu_registers *registers,
                           uint64_t *address, uint64_t *sp)
{
	*address = registers->saved[SAVED_X30] & ADDRESS_MASK;
	*sp = registers->sp;
	return *address != 0;
}
