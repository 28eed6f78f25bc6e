// SPDX-License-Identifier: MIT
/*
 * Loads that cannot fault, and the handler that makes them so.
 *
 * All loads lie between load_code_start and load_code_end and touch no stack,
 * so the handler can make any of them return 0 by moving the instruction
 * pointer to load_failed.
 */
#include "load_sig.h"

#include <string.h>
#include <ucontext.h>

#include "load_faults.h"

extern const char load_code_start[], load_code_end[], load_failed[];

#if defined(__x86_64__)

#define LOAD_FUNCTION(name, body)                                              \
	".globl " name "\n.hidden " name "\n.type " name ",@function\n" name   \
	":\n.cfi_startproc\n" body "\tmovl $1, %eax\n\tret\n"                  \
	".cfi_endproc\n.size " name ", . - " name "\n"

__asm__(".text\n.p2align 4\n"
        ".hidden load_code_start\n.globl load_code_start\n"
        "load_code_start:\n" LOAD_FUNCTION(
		"load_raw_u64",
		"\tmovq (%rdi), %rax\n"
		"\tmovq %rax, (%rsi)\n") LOAD_FUNCTION("load_raw_u32",
                                                       "\tmovl (%rdi), %eax\n"
                                                       "\tmovl %eax, (%rsi)\n")
                LOAD_FUNCTION("load_raw_u16", "\tmovzwl (%rdi), %eax\n"
                                              "\tmovw %ax, (%rsi)\n")
                        LOAD_FUNCTION("load_raw_u8", "\tmovzbl (%rdi), %eax\n"
                                                     "\tmovb %al, (%rsi)\n")
                                LOAD_FUNCTION(
					"load_raw_bytes",
					"\tmovq %rdx, %rcx\n"
					"\trep movsb\n") ".hidden "
                                                         "load_code_end\n."
                                                         "globl load_code_end\n"
                                                         "load_code_end:\n"
                                                         ".hidden "
                                                         "load_failed\n.globl "
                                                         "load_failed\n"
                                                         "load_failed:\n\txorl "
                                                         "%eax, %eax\n\tret\n");

static uint64_t *context_ip(void *context)
{
	ucontext_t *interrupted = context;

	return (uint64_t *)&interrupted->uc_mcontext.gregs[REG_RIP];
}

#elif defined(__aarch64__)

/* clang-format off */
#define LOAD_FUNCTION(name, body)                                              \
	".globl " name "\n.hidden " name "\n.type " name ",%function\n" name   \
	":\n.cfi_startproc\n" body "\tmov w0, #1\n\tret\n"                     \
	".cfi_endproc\n.size " name ", . - " name "\n"

__asm__(".text\n.p2align 4\n"
	".hidden load_code_start\n.globl load_code_start\nload_code_start:\n"
	LOAD_FUNCTION("load_raw_u64", "\tldr x2, [x0]\n\tstr x2, [x1]\n")
	LOAD_FUNCTION("load_raw_u32", "\tldr w2, [x0]\n\tstr w2, [x1]\n")
	LOAD_FUNCTION("load_raw_u16", "\tldrh w2, [x0]\n\tstrh w2, [x1]\n")
	LOAD_FUNCTION("load_raw_u8", "\tldrb w2, [x0]\n\tstrb w2, [x1]\n")
	LOAD_FUNCTION("load_raw_bytes",
		"\tcbz x2, 2f\n"
		"1:\tldrb w3, [x1], #1\n\tstrb w3, [x0], #1\n"
		"\tsubs x2, x2, #1\n\tb.ne 1b\n2:\n")
	".hidden load_code_end\n.globl load_code_end\nload_code_end:\n"
	".hidden load_failed\n.globl load_failed\n"
	"load_failed:\n\tmov w0, #0\n\tret\n");
/* clang-format on */

static uint64_t *context_ip(void *context)
{
	ucontext_t *interrupted = context;

	return (uint64_t *)&interrupted->uc_mcontext.pc;
}

#else
#error "loads that cannot fault are not written for this CPU yet"
#endif

struct sigaction load_previous_segv, load_previous_bus;

/* Does what would have happened to the fault without us. */
static void forward_fault(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *previous =
		signal == SIGSEGV ? &load_previous_segv : &load_previous_bus;
	struct sigaction action;

	if (previous->sa_flags & SA_SIGINFO) {
		previous->sa_sigaction(signal, info, context);
		return;
	}
	if (previous->sa_handler != SIG_DFL &&
	    previous->sa_handler != SIG_IGN) {
		previous->sa_handler(signal);
		return;
	}
	/* Ignoring a fault is not possible: the kernel kills. A fault repeats
	 * when we return; a signal that was sent has to be sent again. */
	memset(&action, 0, sizeof(action));
	action.sa_handler = previous->sa_handler;
	sigaction(signal, &action, NULL);
	if (info->si_code <= 0)
		raise(signal);
}

void load_handle_fault(int signal, siginfo_t *info, void *context)
{
	uint64_t *ip = context_ip(context);

	if (*ip >= (uint64_t)load_code_start && *ip < (uint64_t)load_code_end &&
	    info->si_code > 0) {
		*ip = (uint64_t)load_failed;
		return;
	}
	forward_fault(signal, info, context);
}

bool load_is_caught(int signal)
{
	struct sigaction action;

	return !sigaction(signal, NULL, &action) &&
	       (action.sa_flags & SA_SIGINFO) &&
	       action.sa_sigaction == load_handle_fault;
}

bool load_faults_caught(void)
{
	return load_is_caught(SIGSEGV) && load_is_caught(SIGBUS);
}
