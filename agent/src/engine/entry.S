/* The ways into the engine and back: from the program's stack and registers to
 * a struct dg_frame on the engine's stack of the thread, and back to what the
 * frame says then.
 *
 * Between control.text_low and text_high a thread is in the engine, though
 * dg_me->inside may not say so yet or any more. A signal that finds it there is
 * kept (dg_me->pending). One that finds it between dg_exit_check and
 * dg_exit_end was too late to be seen by the check: its handler sets the
 * interrupted pc to dg_exit_check and nothing else, for everything while leaving
 * out is found from dg_me and the frame. The kernel puts the handler's frame 128
 * bytes below the stack pointer, so nothing here keeps anything lower.
 *
 * Vector registers are not touched. The alignment-check flag, which no program
 * leaves set, is the only one that could disturb the C code and is not cleared.
 */

/* record.h; engine.c asserts that they agree. */
#define R_ENGINE_SP 24
#define R_INSIDE 32
#define R_RAW 92
#define R_PENDING 168
#define R_STUB 1312

#define F_RAX 0
#define F_RBX 8
#define F_RCX 16
#define F_RDX 24
#define F_RSI 32
#define F_RDI 40
#define F_RBP 48
#define F_R8 56
#define F_R9 64
#define F_R10 72
#define F_R11 80
#define F_R12 88
#define F_R13 96
#define F_R14 104
#define F_R15 112
#define F_RIP 120
#define F_RSP 128
#define F_RFLAGS 136
#define F_ORIGIN 144
#define F_AGAIN_RAX 152
#define F_AGAIN_RSP 160
#define F_KIND 168
#define FRAME 176

#define ENTRY_SYSCALL 1
#define ENTRY_CALL 2
#define ENTRY_TSC 3
#define ENTRY_INSN 4
#define ENTRY_POINT 6

#define STUB_GO 0
#define STUB_RESUME 8
#define STUB_KIND 32
#define STUB_AFTER 2

#define POINT_AT 0
#define POINT_GO 8
#define POINT_PASS 16

#define TRAP_FLAG 0x100
#define RED_ZONE 128
#define SYS_PRCTL 157
#define PR_SET_TSC 26
#define PR_TSC_ENABLE 1

/* The thread's struct dg_rthread. Flags stay. */
.macro ME register
	movq	dg_me@gottpoff(%rip), \register
	movq	%fs:(\register), \register
.endm

/* A function's first lines. */
.macro BEGIN name
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	64
\name:
	.cfi_startproc
.endm

/* With the frame's address in r11: what the kernel, too, leaves as it is. */
.macro SAVE_GENERAL
	movq	%rax, F_RAX(%r11)
	movq	%rbx, F_RBX(%r11)
	movq	%rcx, F_RCX(%r11)
	movq	%rdx, F_RDX(%r11)
	movq	%rsi, F_RSI(%r11)
	movq	%rdi, F_RDI(%r11)
	movq	%rbp, F_RBP(%r11)
	movq	%r8, F_R8(%r11)
	movq	%r9, F_R9(%r11)
	movq	%r10, F_R10(%r11)
	movq	%r12, F_R12(%r11)
	movq	%r13, F_R13(%r11)
	movq	%r14, F_R14(%r11)
	movq	%r15, F_R15(%r11)
.endm

/* On the engine's stack, rsp being the frame's address: the unwinder finds the
 * program's registers in the frame. DW_OP_breg7 is rsp. */
.macro CFI_SAVED register, offset
	.if \offset < 64
	.cfi_escape 0x10, \register, 2, 0x77, \offset
	.else
	.cfi_escape 0x10, \register, 3, 0x77, (\offset & 0x7f) | 0x80, \offset >> 7
	.endif
.endm

/* pc: the frame's word with the program's pc. The CFA is the program's rsp. */
.macro CFI_FRAME pc
	.cfi_escape 0x0f, 4, 0x77, (F_RSP & 0x7f) | 0x80, F_RSP >> 7, 0x06
	CFI_SAVED 16, \pc
	CFI_SAVED 0, F_RAX
	CFI_SAVED 1, F_RDX
	CFI_SAVED 3, F_RBX
	CFI_SAVED 4, F_RSI
	CFI_SAVED 5, F_RDI
	CFI_SAVED 6, F_RBP
	CFI_SAVED 8, F_R8
	CFI_SAVED 9, F_R9
	CFI_SAVED 10, F_R10
	CFI_SAVED 12, F_R12
	CFI_SAVED 13, F_R13
	CFI_SAVED 14, F_R14
	CFI_SAVED 15, F_R15
.endm

/* The flags by way of the engine's stack, as the program's has a red zone. The
 * trap flag is the debugger's, not the program's. */
.macro SAVE_FLAGS
	pushfq
	popq	%r11
	andq	$~TRAP_FLAG, %r11
	movq	%r11, F_RFLAGS(%rsp)
.endm

/* Onto the engine's stack, the frame's address in rsp: the program's rsp and flags
 * are in it, r11 is the thread's struct dg_rthread. alone (near): there is none,
 * rcx and r11 are exchanged and nothing was done. native: the engine does not run;
 * raw: not for this thread. No flag before they are saved is touched. */
.macro TO_ENGINE alone, native, raw
	ME	%r11
	xchgq	%rcx, %r11
	jrcxz	\alone
	xchgq	%rcx, %r11
	movq	R_ENGINE_SP(%r11), %r11
	leaq	-FRAME(%r11), %r11
	movq	%rsp, F_RSP(%r11)
	movq	%r11, %rsp
	SAVE_FLAGS
	ME	%r11
	cmpl	$0, dg_mode(%rip)
	je	\native
	cmpl	$0, R_RAW(%r11)
	jne	\raw
.endm

.macro ENTER function
	ME	%rax
	movq	%rsp, R_INSIDE(%rax)
	cld
	movq	%rsp, %rdi
	call	\function
.endm

	.text
	.globl	dg_text_low, dg_text_high
	.hidden	dg_text_low, dg_text_high
	.balign	64

/* long dg_engine(long op, ...). It is outside of the engine's text: a call that
 * is made again starts here, and the kernel must be able to deliver a signal
 * before it. */
	.globl	dg_engine
	.hidden	dg_engine
	.type	dg_engine, @function
dg_engine:
	.cfi_startproc
	jmp	dg_entry_call
	.cfi_endproc
	.size	dg_engine, .-dg_engine

	.balign	64
dg_text_low:

	.type	dg_entry_call, @function
dg_entry_call:
	.cfi_startproc
	ME	%r11
	testq	%r11, %r11
	jz	.Lno_engine
	movq	R_ENGINE_SP(%r11), %r11
	leaq	-FRAME(%r11), %r11
	SAVE_GENERAL
	movq	%rsp, F_AGAIN_RSP(%r11)
	leaq	8(%rsp), %rax
	movq	%rax, F_RSP(%r11)
	movq	(%rsp), %rax
	movq	%rax, F_RIP(%r11)
	leaq	dg_engine(%rip), %rax
	movq	%rax, F_ORIGIN(%r11)
	movq	$0, F_AGAIN_RAX(%r11)
	/* A function's caller expects nothing of it; it is the same in a replay. */
	movq	$0, F_R11(%r11)
	movq	$ENTRY_CALL, F_KIND(%r11)
	movq	%r11, %rsp
	CFI_FRAME F_RIP
	SAVE_FLAGS
	ENTER	dg_call
	jmp	dg_exit_check
.Lno_engine:
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	dg_entry_call, .-dg_entry_call

/* From a stub: rcx is the address of its struct dg_stub. Nothing of the program's
 * memory is touched, and no flag before it is saved. */
	.globl	dg_entry_syscall
	.hidden	dg_entry_syscall
	.type	dg_entry_syscall, @function
	.balign	64
.Lstub_near:
	jmp	.Lstub_alone
	.balign	64
dg_entry_syscall:
	.cfi_startproc
	.cfi_def_cfa_offset 0
	.cfi_undefined rip
	TO_ENGINE .Lstub_near, .Lstub_native, .Lstub_raw
.Lstub_enter:
	movq	%rsp, %r11
	SAVE_GENERAL
	movq	$ENTRY_SYSCALL, F_KIND(%r11)
	movq	%rax, F_AGAIN_RAX(%r11)
	movq	STUB_GO(%rcx), %rax
	movq	%rax, F_RIP(%r11)
	/* After the call in the program's own text, for the unwinder: no table
	 * covers the stub. */
	movq	STUB_RESUME(%rcx), %rax
	movq	%rax, F_R11(%r11)
	movq	F_RSP(%r11), %rax
	movq	%rax, F_AGAIN_RSP(%r11)
	CFI_FRAME F_R11
	ENTER	dg_system_call
	jmp	dg_exit_check
	.cfi_endproc
	.cfi_startproc
	.cfi_undefined rip
/* The parent returns from the call that made a child borrow its memory. */
.Lstub_raw:
	cmpq	$STUB_AFTER, STUB_KIND(%rcx)
	je	.Lstub_enter
/* The thread is not the engine's: on its own stack, as the kernel is asked. */
.Lstub_native:
	pushq	F_RFLAGS(%rsp)
	popfq
	movq	F_RSP(%rsp), %rsp
	jmp	.Lstub_plain
.Lstub_alone:
	movq	%r11, %rcx
.Lstub_plain:
	leaq	-RED_ZONE(%rsp), %rsp
	pushfq
	cmpq	$0, STUB_KIND(%rcx)
	jne	.Lstub_clone
	popfq
	pushq	%rcx
	syscall
	popq	%rcx
	leaq	RED_ZONE(%rsp), %rsp
	jmp	*STUB_GO(%rcx)
.Lstub_clone:
	popfq
	leaq	RED_ZONE(%rsp), %rsp
	jmp	*STUB_GO(%rcx)
	.cfi_endproc
	.size	dg_entry_syscall, .-dg_entry_syscall

/* From the tracer, which found the thread at a ud2 in a system call's place
 * (DG_PATCH_TRAP): it has set rcx to the ud2's address, which is 2 bytes long as
 * syscall is, rip to here, and nothing else, and it has dropped the signal. */
	.globl	dg_entry_insn
	.hidden	dg_entry_insn
	.type	dg_entry_insn, @function
	.balign	64
.Linsn_near:
	jmp	.Linsn_alone
	.balign	64
dg_entry_insn:
	.cfi_startproc
	.cfi_def_cfa_offset 0
	.cfi_undefined rip
	TO_ENGINE .Linsn_near, .Linsn_native, .Linsn_native
	movq	%rsp, %r11
	SAVE_GENERAL
	movq	$ENTRY_INSN, F_KIND(%r11)
	movq	%rax, F_AGAIN_RAX(%r11)
	movq	%rcx, F_ORIGIN(%r11)
	leaq	2(%rcx), %rax
	movq	%rax, F_RIP(%r11)
	movq	%rax, F_R11(%r11)
	movq	F_RSP(%r11), %rax
	movq	%rax, F_AGAIN_RSP(%r11)
	CFI_FRAME F_R11
	ENTER	dg_system_call
	jmp	dg_exit_check
	.cfi_endproc
	.cfi_startproc
	.cfi_undefined rip
.Linsn_native:
	pushq	F_RFLAGS(%rsp)
	popfq
	movq	F_RSP(%rsp), %rsp
	jmp	.Linsn_plain
.Linsn_alone:
	movq	%r11, %rcx
.Linsn_plain:
	leaq	2(%rcx), %rcx
	leaq	-RED_ZONE(%rsp), %rsp
	pushq	%rcx
	syscall
	popq	%rcx
	leaq	RED_ZONE(%rsp), %rsp
	jmp	*%rcx
	.cfi_endproc
	.size	dg_entry_insn, .-dg_entry_insn

/* From the tracer, which found the thread at rdtsc (0f 31) or rdtscp (0f 01 f9),
 * stopped by SIGSEGV. These destroy nothing but their results, so no register is
 * free: it has stored the instruction's address 136 bytes below rsp, subtracted
 * 136 from rsp, set rip to here, changed nothing else and dropped the signal. */
.macro ENTRY_FOR_TSC name, function
	BEGIN	\name
	.cfi_def_cfa_offset RED_ZONE + 8
	.cfi_offset rip, -(RED_ZONE + 8)
	pushfq
	.cfi_adjust_cfa_offset 8
	pushq	%r11
	.cfi_adjust_cfa_offset 8
	ME	%r11
	testq	%r11, %r11
	jz	.Ltsc_native
	cmpl	$0, dg_mode(%rip)
	je	.Ltsc_native
	cmpl	$0, R_RAW(%r11)
	jne	.Ltsc_native
	movq	R_ENGINE_SP(%r11), %r11
	leaq	-FRAME(%r11), %r11
	SAVE_GENERAL
	movq	(%rsp), %rax
	movq	%rax, F_R11(%r11)
	movq	8(%rsp), %rax
	andq	$~TRAP_FLAG, %rax
	movq	%rax, F_RFLAGS(%r11)
	movq	16(%rsp), %rax
	movq	%rax, F_RIP(%r11)
	movq	%rax, F_ORIGIN(%r11)
	leaq	24 + RED_ZONE(%rsp), %rax
	movq	%rax, F_RSP(%r11)
	movq	%rax, F_AGAIN_RSP(%r11)
	movq	F_RAX(%r11), %rax
	movq	%rax, F_AGAIN_RAX(%r11)
	movq	$ENTRY_TSC, F_KIND(%r11)
	movq	%r11, %rsp
	CFI_FRAME F_RIP
	ENTER	\function
	jmp	dg_exit_check
	.cfi_endproc
	.size	\name, .-\name
.endm
	ENTRY_FOR_TSC dg_entry_tsc, dg_time_stamp
/* The same from a stub, which has done so, and has a copy of the instruction. */
	ENTRY_FOR_TSC dg_entry_tsc_stub, dg_time_stamp_stub
	.cfi_startproc
	.cfi_def_cfa_offset RED_ZONE + 24
	.cfi_offset rip, -(RED_ZONE + 8)
/* Not the engine's: it may read the counter from now on, and does so again. */
.Ltsc_native:
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	movl	$SYS_PRCTL, %eax
	movl	$PR_SET_TSC, %edi
	movl	$PR_TSC_ENABLE, %esi
	syscall
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rax
	.cfi_adjust_cfa_offset -8
	popq	%r11
	.cfi_adjust_cfa_offset -8
	popfq
	.cfi_adjust_cfa_offset -8
	ret	$RED_ZONE
	.cfi_endproc

/* From wrap/point.c, with the thread's struct dg_rthread in r11: as if that had
 * returned. site: where in the stack the point's pc is. */
.macro ENTRY_FOR_POINT name, site
	BEGIN	\name
	movq	R_ENGINE_SP(%r11), %r11
	leaq	-FRAME(%r11), %r11
	SAVE_GENERAL
	movq	(%rsp), %rax
	movq	%rax, F_RIP(%r11)
	movq	\site(%rsp), %rax
	movq	%rax, F_ORIGIN(%r11)
	leaq	8(%rsp), %rax
	movq	%rax, F_RSP(%r11)
	movq	%rax, F_AGAIN_RSP(%r11)
	movq	$0, F_AGAIN_RAX(%r11)
	movq	$0, F_R11(%r11)
	movq	$ENTRY_POINT, F_KIND(%r11)
	movq	%r11, %rsp
	CFI_FRAME F_RIP
	/* The flags that the program has where the engine is not entered. */
	xorl	%eax, %eax
	SAVE_FLAGS
	ENTER	dg_point_entered
	jmp	dg_exit_check
	.cfi_endproc
	.size	\name, .-\name
.endm
	ENTRY_FOR_POINT dg_entry_point, 0
	ENTRY_FOR_POINT dg_entry_point_within, 8

/* From the stub of a point at an instruction: rcx is the address of its struct
 * dg_point_stub, the program's rcx is dg_point_saved, and its rax in the thread's
 * struct dg_rthread. No flag is touched before they are saved. */
	.globl	dg_entry_point_stub
	.hidden	dg_entry_point_stub
	.type	dg_entry_point_stub, @function
	.balign	64
	.cfi_startproc
	.cfi_undefined rip
/* The thread is not the engine's. */
.Lpoint_pass:
	movq	R_STUB + 8(%rax), %r11
	movq	R_STUB + 16(%rax), %rcx
	jmp	*POINT_PASS(%rcx)
	.cfi_endproc
dg_entry_point_stub:
	.cfi_startproc
	.cfi_def_cfa_offset 0
	.cfi_undefined rip
	ME	%rax
	movq	%r11, R_STUB + 8(%rax)
	movq	%rcx, R_STUB + 16(%rax)
	movl	R_RAW(%rax), %ecx
	jrcxz	1f
	jmp	.Lpoint_pass
1:	movl	dg_mode(%rip), %ecx
	jrcxz	.Lpoint_pass
	movq	dg_point_saved@gottpoff(%rip), %r11
	movq	%fs:(%r11), %rcx
	movq	$0, %fs:(%r11)
	movq	R_ENGINE_SP(%rax), %r11
	leaq	-FRAME(%r11), %r11
	movq	R_STUB(%rax), %rax
	SAVE_GENERAL
	movq	%rsp, F_RSP(%r11)
	movq	%rsp, F_AGAIN_RSP(%r11)
	movq	%r11, %rsp
	SAVE_FLAGS
	ME	%rax
	movq	R_STUB + 8(%rax), %rcx
	movq	%rcx, F_R11(%rsp)
	movq	R_STUB + 16(%rax), %rcx
	movq	%rcx, F_AGAIN_RAX(%rsp)
	movq	POINT_AT(%rcx), %rcx
	movq	%rcx, F_RIP(%rsp)
	movq	%rcx, F_ORIGIN(%rsp)
	movq	$ENTRY_POINT, F_KIND(%rsp)
	CFI_FRAME F_RIP
	ENTER	dg_point_entered
	jmp	dg_exit_check
	.cfi_endproc
	.size	dg_entry_point_stub, .-dg_entry_point_stub

/* The way out. From the check on, nothing is taken from a register. */
	.globl	dg_exit_check, dg_exit_end
	.hidden	dg_exit_check, dg_exit_end
	.type	dg_exit_check, @function
	.balign	64
dg_exit_check:
	.cfi_startproc
	.cfi_undefined rip
	ME	%rax
	movq	R_ENGINE_SP(%rax), %rcx
	leaq	-FRAME(%rcx), %rcx
	movq	%rcx, %rsp
	CFI_FRAME F_RIP
	movq	%rsp, R_INSIDE(%rax)
	cmpl	$0, R_PENDING(%rax)
	jne	.Lpending
	movq	$0, R_INSIDE(%rax)
	movq	F_RBX(%rsp), %rbx
	movq	F_RDX(%rsp), %rdx
	movq	F_RSI(%rsp), %rsi
	movq	F_RDI(%rsp), %rdi
	movq	F_RBP(%rsp), %rbp
	movq	F_R8(%rsp), %r8
	movq	F_R9(%rsp), %r9
	movq	F_R10(%rsp), %r10
	movq	F_R12(%rsp), %r12
	movq	F_R13(%rsp), %r13
	movq	F_R14(%rsp), %r14
	movq	F_R15(%rsp), %r15
	movq	F_KIND(%rsp), %rax
	cmpl	$ENTRY_TSC, %eax
	je	.Lexit_all
	cmpl	$ENTRY_POINT, %eax
	je	.Lexit_point
	/* The ABI promises no flags after a call, nor after a system call whatever the
	 * kernel does; popfq costs more than all else here. They are what the last
	 * comparison says, in a replay too. */
	movq	F_RIP(%rsp), %rcx
	cmpl	$ENTRY_CALL, %eax
	jne	.Lexit_jump
	/* A return, where it is one, for the processor pairs calls and returns. */
	movq	F_RSP(%rsp), %r11
	cmpq	%rcx, -8(%r11)
	jne	.Lexit_jump
	movq	F_RAX(%rsp), %rax
	movq	F_R11(%rsp), %r11
	movq	F_RSP(%rsp), %rsp
	.cfi_def_cfa rsp, 0
	.cfi_offset rip, -8
	leaq	-8(%rsp), %rsp
	.cfi_adjust_cfa_offset 8
	ret
	.cfi_endproc
	.cfi_startproc
	.cfi_undefined rip
.Lexit_jump:
	movq	F_RAX(%rsp), %rax
	movq	F_R11(%rsp), %r11
	movq	F_RSP(%rsp), %rsp
	jmp	*%rcx
/* The flags are those that the program has where the engine was not entered. A
 * debugger's trap flag stays, which iretq would take away. */
.Lexit_point:
	movq	F_AGAIN_RAX(%rsp), %rcx
	testq	%rcx, %rcx
	jnz	.Lexit_stub
	movq	F_RSP(%rsp), %r11
	movq	F_RIP(%rsp), %rax
	cmpq	%rax, -8(%r11)
	jne	.Lexit_all
	movq	F_RAX(%rsp), %rax
	movq	F_RCX(%rsp), %rcx
	leaq	-8(%r11), %rsp
	xorl	%r11d, %r11d
	ret
.Lexit_all:
	movq	F_RAX(%rsp), %rax
	movq	F_RCX(%rsp), %rcx
	movq	%ss, %r11
	pushq	%r11
	pushq	8 + F_RSP(%rsp)
	pushq	16 + F_RFLAGS(%rsp)
	movq	%cs, %r11
	pushq	%r11
	pushq	32 + F_RIP(%rsp)
	movq	40 + F_R11(%rsp), %r11
	iretq
/* To the stub, with all that the program has, unless it continues elsewhere. */
.Lexit_stub:
	movq	F_RIP(%rsp), %rax
	cmpq	%rax, F_ORIGIN(%rsp)
	jne	.Lexit_all
	movq	%ss, %r11
	pushq	%r11
	pushq	8 + F_RSP(%rsp)
	pushq	16 + F_RFLAGS(%rsp)
	movq	%cs, %r11
	pushq	%r11
	pushq	POINT_GO(%rcx)
	movq	40 + F_RAX(%rsp), %rax
	movq	40 + F_RCX(%rsp), %rcx
	movq	40 + F_R11(%rsp), %r11
	iretq
dg_exit_end:
	.cfi_endproc
	.cfi_startproc
.Lpending:
	CFI_FRAME F_RIP
	cld
	movq	%rsp, %rdi
	call	dg_leave
	jmp	dg_exit_check
	.cfi_endproc
	.size	dg_exit_check, .-dg_exit_check

/* dg_blocking: engine/engine.h. */
	.globl	dg_blocking, dg_blocking_low, dg_blocking_insn, dg_blocking_done
	.hidden	dg_blocking, dg_blocking_low, dg_blocking_insn, dg_blocking_done
	.type	dg_blocking, @function
dg_blocking:
	.cfi_startproc
	movq	%rdi, %rax
	movq	%rsi, %r11
	movq	%rdx, %rcx
	movq	0(%r11), %rdi
	movq	8(%r11), %rsi
	movq	16(%r11), %rdx
	movq	24(%r11), %r10
	movq	32(%r11), %r8
	movq	40(%r11), %r9
dg_blocking_low:
	cmpl	$0, (%rcx)
	jne	.Lnot_made
dg_blocking_insn:
	syscall
/* After a system call the processor has forgotten where calls came from, and a
 * return costs more than all that the engine does besides. */
dg_blocking_done:
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register rip, rcx
	jmp	*%rcx
	.cfi_restore rip
	.cfi_adjust_cfa_offset 8
.Lnot_made:
	movq	$-512, %rax
	ret
	.cfi_endproc
	.size	dg_blocking, .-dg_blocking

/* long dg_int3(long what, long a, long b, long c): record.h, DG_TRAP_MAGIC. */
	.globl	dg_int3, dg_int3_at
	.hidden	dg_int3, dg_int3_at
	.type	dg_int3, @function
dg_int3:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	movabsq	$0x646961676e6f7365, %rbx
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
dg_int3_at:
	int3
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	ret
	.cfi_endproc
	.size	dg_int3, .-dg_int3

/* Where a thread is parked (control.park_pc): the tracer left rsp on the
 * engine's stack, aligned as at a function's entry. */
	.globl	dg_entry_park
	.hidden	dg_entry_park
	.type	dg_entry_park, @function
dg_entry_park:
	.cfi_startproc
	.cfi_undefined rip
	cld
	call	dg_park_here
	ud2
	.cfi_endproc
	.size	dg_entry_park, .-dg_entry_park
dg_text_high:

	.section .note.GNU-stack, "", @progbits
