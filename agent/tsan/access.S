/* What a compiler calls before plain accesses (-fsanitize=thread). Nothing is
 * looked at but where the call came from: dg_tsan_point (start.c) counts it.
 * diagnose_point has the stack as the program's call left it, so its return is
 * the program's. All is weak, here and in the other files, for libtool makes a
 * library link the objects that it saw the compiler link, once more. */
	.macro	ENTRY name
	.weak	\name
	.hidden	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	.endm

	.macro	DONE name
	.cfi_endproc
	.size	\name, .-\name
	.endm

	.macro	ACCESS name
	ENTRY	\name
	jmp	*dg_tsan_point(%rip)
	DONE	\name
	.endm

	.text
	.irp	size, 1, 2, 4, 8, 16
	ACCESS	__tsan_read\size
	ACCESS	__tsan_write\size
	ACCESS	__tsan_read_write\size
	ACCESS	__tsan_read\size\()_pc
	ACCESS	__tsan_write\size\()_pc
	ACCESS	__tsan_volatile_read\size
	ACCESS	__tsan_volatile_write\size
	ACCESS	__tsan_unaligned_read\size
	ACCESS	__tsan_unaligned_write\size
	ACCESS	__tsan_unaligned_read_write\size
	ACCESS	__tsan_unaligned_volatile_read\size
	ACCESS	__tsan_unaligned_volatile_write\size
	.endr
	ACCESS	__tsan_read_range
	ACCESS	__tsan_write_range
	ACCESS	__tsan_read_range_pc
	ACCESS	__tsan_write_range_pc
	ACCESS	__tsan_vptr_read
	ACCESS	__tsan_vptr_update
	ACCESS	__tsan_external_read
	ACCESS	__tsan_external_write
	/* Before what a function does through others that are not instrumented
	 * (strcpy), there is no point but this. */
	ACCESS	__tsan_func_entry

	ENTRY	__tsan_func_exit
	ret
	DONE	__tsan_func_exit

	/* Without a recording. */
	ENTRY	dg_tsan_nothing
	ret
	DONE	dg_tsan_nothing

	/* The code that makes the access itself, after its point. It is jumped to, so that the
	 * program's return address is right above diagnose_point_within's, and
	 * the arguments are where they were. */
	.macro	WITHIN name, does
	ENTRY	\name
	call	*dg_tsan_within(%rip)
	jmp	\does
	DONE	\name
	.endm

	.irp	bits, 8, 16, 32, 64, 128
	.irp	operation, load, store, exchange, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor, fetch_nand
	WITHIN	__tsan_atomic\bits\()_\operation, __tsan_real_atomic\bits\()_\operation
	.endr
	WITHIN	__tsan_atomic\bits\()_compare_exchange_strong, __tsan_real_atomic\bits\()_compare_exchange
	WITHIN	__tsan_atomic\bits\()_compare_exchange_weak, __tsan_real_atomic\bits\()_compare_exchange
	WITHIN	__tsan_atomic\bits\()_compare_exchange_val, __tsan_real_atomic\bits\()_compare_exchange_val
	.endr
	WITHIN	__tsan_memcpy, memcpy@PLT
	WITHIN	__tsan_memmove, memmove@PLT
	WITHIN	__tsan_memset, memset@PLT

	.section .note.GNU-stack, "", @progbits
