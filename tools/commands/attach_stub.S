/* SPDX-License-Identifier: MIT */
/*
 * What runs in a process that is attached to, x86-64. Copied there, so it has no
 * data of its own and calls through its block.
 *
 * attach_stub_start is the system call that a thread of the process is made to
 * execute: clone(2). The thread that this makes goes on behind it, with thread-local
 * storage of its own, and has the C library make a proper thread, which loads the
 * agent. So no thread of the process ever runs a foreign function.
 */
#include "attach_block.h"

	.text
	.globl attach_stub_start, attach_stub_end
	.hidden attach_stub_start, attach_stub_end
	.p2align 4
attach_stub_start:
	syscall
	/* The new thread: its block is in r15. */
	movq %r15, %rbx
	andq $-16, %rsp
	subq $16, %rsp
	movq %rsp, %rdi
	leaq 8(%rsp), %rsi
	call *BLOCK_GET_TLS_BYTES(%rbx)
	movl $ATTACH_TLS_TOO_BIG, %eax
	movq (%rsp), %rcx
	cmpq BLOCK_TLS_BYTES_MAX(%rbx), %rcx
	ja .Lno_thread
	movq BLOCK_THREAD_BLOCK(%rbx), %rdi
	movl $1, %esi
	call *BLOCK_INIT_TLS(%rbx)
	leaq BLOCK_THREAD(%rbx), %rdi
	xorl %esi, %esi
	leaq .Lload(%rip), %rdx
	movq %rbx, %rcx
	call *BLOCK_CREATE_THREAD(%rbx)
	testl %eax, %eax
	jne .Lno_thread
	/* Unless the thread is further already; eax is ATTACH_NOTHING. */
	movl $ATTACH_THREAD_RUNS, %ecx
	lock cmpxchgl %ecx, BLOCK_STATE(%rbx)
	jmp .Lexit
.Lno_thread:
	movl %eax, BLOCK_CODE(%rbx)
	movl $ATTACH_NO_THREAD, BLOCK_STATE(%rbx)
.Lexit:
	movl $60, %eax /* exit(2): of this thread */
	xorl %edi, %edi
	syscall
	hlt

	/* void *load(struct attach_block *) */
.Lload:
	pushq %rbx
	movq %rdi, %rbx
	movl $186, %eax /* gettid(2) */
	syscall
	movl %eax, BLOCK_STUB_ID(%rbx)
	leaq BLOCK_AGENT(%rbx), %rdi
	movl BLOCK_OPEN_FLAGS(%rbx), %esi
	call *BLOCK_OPEN_LIBRARY(%rbx)
	testq %rax, %rax
	je .Lno_agent
	movq %rax, %rdi
	leaq BLOCK_SYMBOL(%rbx), %rsi
	call *BLOCK_FIND_SYMBOL(%rbx)
	testq %rax, %rax
	je .Lno_agent
	movq %rbx, %rdi
	call *%rax
	jmp .Lreturn
.Lno_agent:
	call *BLOCK_DESCRIBE_ERROR(%rbx)
	testq %rax, %rax
	je .Ltold
	xorl %ecx, %ecx
.Lcopy:
	movb (%rax,%rcx), %dl
	movb %dl, BLOCK_ERROR(%rbx,%rcx)
	testb %dl, %dl
	je .Ltold
	incl %ecx
	cmpl $(BLOCK_ERROR_BYTES - 1), %ecx
	jb .Lcopy
.Ltold:
	movq BLOCK_THREAD(%rbx), %rdi
	call *BLOCK_DETACH_THREAD(%rbx)
	movl $ATTACH_NO_AGENT, BLOCK_STATE(%rbx)
.Lreturn:
	xorl %eax, %eax
	popq %rbx
	ret
attach_stub_end:

	.section .note.GNU-stack,"",@progbits
