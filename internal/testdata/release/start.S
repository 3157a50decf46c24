/* Starts a program as glibc's crt1.o does, by the version of __libc_start_main that every
 * glibc has: so it runs on older ones than it was compiled with. */
	.symver __libc_start_main, __libc_start_main@GLIBC_2.2.5
	.globl _start
_start:	.cfi_startproc
	.cfi_undefined rip
	xorl %ebp, %ebp
	movq %rdx, %r9
	popq %rsi
	movq %rsp, %rdx
	andq $-16, %rsp
	pushq %rax
	pushq %rsp
	xorl %r8d, %r8d
	xorl %ecx, %ecx
	movq main@GOTPCREL(%rip), %rdi
	call *__libc_start_main@GOTPCREL(%rip)
	hlt
	.cfi_endproc
	.section .note.GNU-stack,"",@progbits
