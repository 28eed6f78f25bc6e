// SPDX-License-Identifier: MIT
/*
 * One step of native unwinding on x86-64. Runs in the signal handler.
 */
#include "unwind_sig.h"

#include <string.h>
#include <ucontext.h>

#include "../load_sig.h"

/* A PLT stub has 16 bytes; the push in it ends at byte 11. */
#define PLT_STUB_BYTES 16
#define PLT_PUSH_END   11

static bool compute_cfa(const struct unwind_rule *rule,
                        const struct cpu_registers *registers, uint64_t *cfa)
{
	if (rule->flags & UNWIND_PLT) {
		*cfa = registers->sp + 8;
		if (registers->ip % PLT_STUB_BYTES >= PLT_PUSH_END)
			*cfa += 8;
		return true;
	}
	*cfa = rule->cfa_register == SAVED_COUNT
	               ? registers->sp
	               : registers->saved[rule->cfa_register];
	*cfa += (uint64_t)(int64_t)rule->cfa_offset;
	return !(rule->flags & UNWIND_CFA_LOAD) || load_u64(*cfa, cfa);
}

/* At a signal trampoline the stack pointer is at the ucontext that the kernel
 * saved (rt_sigframe, arch/x86/include/asm/sigframe.h). */
bool unwind_signal_context(uint64_t sp, ucontext_t *context)
{
	return load_bytes(context, sp,
	                  offsetof(ucontext_t, uc_mcontext) +
	                          sizeof(context->uc_mcontext));
}

static enum unwind_result unwind_signal(struct cpu_registers *registers)
{
	ucontext_t context;

	if (!unwind_signal_context(registers->sp, &context))
		return UNWIND_BAD_READ;
	cpu_registers_read(registers, &context);
	return UNWIND_INTERRUPTED;
}

enum unwind_result unwind_step(const struct unwind_rule *rule,
                               struct cpu_registers *registers)
{
	struct cpu_registers caller = *registers;
	uint64_t cfa;
	int i;

	if (!rule)
		return UNWIND_NO_TABLE;
	if (rule->flags & UNWIND_OUTERMOST)
		return UNWIND_END;
	if (rule->flags & UNWIND_SIGNAL)
		return unwind_signal(registers);
	if (!compute_cfa(rule, registers, &cfa))
		return UNWIND_BAD_READ;
	if (cfa <= registers->sp)
		return UNWIND_NO_PROGRESS;
	for (i = 0; i < SAVED_COUNT; i++) {
		int64_t offset = rule->saved[i] * INT64_C(8);

		if (rule->saved[i] != UNWIND_SAVED_SAME &&
		    !load_u64(cfa + (uint64_t)offset, &caller.saved[i]))
			return UNWIND_BAD_READ;
	}
	if (!load_u64(cfa - 8, &caller.ip))
		return UNWIND_BAD_READ;
	caller.sp = cfa;
	if (!caller.ip)
		return UNWIND_END;
	*registers = caller;
	return UNWIND_CALLER;
}

#define CALL_RELATIVE       0xe8
#define CALL_RELATIVE_BYTES 5
#define CALL_GROUP          0xff /* and 2 in the middle of the next byte */
#define CALL_BYTES_MIN      2
#define CALL_BYTES_MAX      7

bool cpu_follows_call(uint64_t address)
{
	uint8_t bytes[CALL_BYTES_MAX];
	const uint8_t *end = bytes + sizeof(bytes);
	int length;

	if (!load_bytes(bytes, address - sizeof(bytes), sizeof(bytes)))
		return false;
	if (end[-CALL_RELATIVE_BYTES] == CALL_RELATIVE)
		return true;
	for (length = CALL_BYTES_MIN; length <= CALL_BYTES_MAX; length++)
		if (end[-length] == CALL_GROUP &&
		    (end[1 - length] >> 3 & 7) == 2)
			return true;
	return false;
}

bool cpu_find_fresh_return(const struct cpu_registers *registers,
                           uint64_t *address, uint64_t *sp)
{
	*sp = registers->sp + 8;
	return load_u64(registers->sp, address);
}
