// SPDX-License-Identifier: MIT
/*
 * The probe and the two moves around it. Runs in the signal handler.
 *
 * Assembly, because between two statements of C the compiler may use the frame
 * pointer for its own purposes (-O0 always does). Nothing is put on the stack:
 * the caller's red zone and alignment do not matter. Leaf function; the frame
 * pointer waits in a register that any call may overwrite.
 */
#include <sys/sdt.h>

	.text
	.p2align 4
	.globl luajit_sysprof_sample
	.hidden luajit_sysprof_sample
	.type luajit_sysprof_sample, %function
luajit_sysprof_sample:
	.cfi_startproc
#if defined(__x86_64__)
	movq %rbp, %rax
	.cfi_register %rbp, %rax
	movq %rdi, %rbp
	STAP_PROBE(luajit_sysprof, sample)
	movq %rax, %rbp
	.cfi_restore %rbp
	ret
#elif defined(__aarch64__)
	mov x9, x29
	.cfi_register x29, x9
	mov x29, x0
	STAP_PROBE(luajit_sysprof, sample)
	mov x29, x9
	.cfi_restore x29
	ret
#else
#error "the beacon is not written for this CPU: x86-64 and AArch64 are"
#endif
	.cfi_endproc
	.size luajit_sysprof_sample, . - luajit_sysprof_sample

	.section .note.GNU-stack, "", %progbits
