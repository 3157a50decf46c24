/* What programs call to explain themselves to a race detector
 * (sanitizer/tsan_interface.h, dynamic annotations). There is nothing to explain
 * to a schedule: these return, 0 where a caller wants a result. */
	.macro	NOTHING names:vararg
	.irp	name, \names
	.weak	\name
	.hidden	\name
	.type	\name, @function
\name:
	.endr
	.cfi_startproc
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.endm

	.text
	NOTHING __tsan_acquire, __tsan_release, __tsan_ignore_thread_begin, __tsan_ignore_thread_end
	NOTHING __tsan_flush_memory, __tsan_on_thread_idle, __tsan_setjmp
	NOTHING __tsan_mutex_create, __tsan_mutex_destroy, __tsan_mutex_pre_lock, __tsan_mutex_post_lock
	NOTHING __tsan_mutex_pre_signal, __tsan_mutex_post_signal, __tsan_mutex_pre_divert, __tsan_mutex_post_divert
	/* Returns how often a recursive lock was held. */
	NOTHING __tsan_mutex_pre_unlock, __tsan_mutex_post_unlock
	NOTHING __tsan_external_register_tag, __tsan_external_register_header, __tsan_external_assign_tag
	/* A fiber that is there must not be NULL for some, but no caller looks into it. */
	NOTHING __tsan_destroy_fiber, __tsan_switch_to_fiber, __tsan_set_fiber_name
	NOTHING __tsan_java_init, __tsan_java_fini, __tsan_java_alloc, __tsan_java_free, __tsan_java_move
	NOTHING __tsan_java_find, __tsan_java_finalize, __tsan_java_mutex_lock, __tsan_java_mutex_unlock
	NOTHING __tsan_java_mutex_read_lock, __tsan_java_mutex_read_unlock, __tsan_java_mutex_lock_rec
	NOTHING __tsan_java_mutex_unlock_rec, __tsan_java_acquire, __tsan_java_release, __tsan_java_release_store
	NOTHING __tsan_get_current_report, __tsan_get_report_data, __tsan_get_report_stack, __tsan_get_report_mop
	NOTHING __tsan_get_report_loc, __tsan_get_report_loc_object_type, __tsan_get_report_mutex
	NOTHING __tsan_get_report_thread, __tsan_get_report_unique_tid, __tsan_get_report_tag
	NOTHING __tsan_locate_address, __tsan_get_alloc_stack, __tsan_testonly_shadow_stack_current_size
	NOTHING AnnotateHappensBefore, AnnotateHappensAfter, AnnotateCondVarSignal, AnnotateCondVarSignalAll
	NOTHING AnnotateMutexIsNotPHB, AnnotateMutexIsUsedAsCondVar, AnnotateCondVarWait, AnnotateRWLockCreate
	NOTHING AnnotateRWLockCreateStatic, AnnotateRWLockDestroy, AnnotateRWLockAcquired, AnnotateRWLockReleased
	NOTHING AnnotateTraceMemory, AnnotateFlushState, AnnotateNewMemory, AnnotateNoOp, AnnotateFlushExpectedRaces
	NOTHING AnnotateEnableRaceDetection, AnnotatePCQGet, AnnotatePCQPut, AnnotatePCQDestroy, AnnotatePCQCreate
	NOTHING AnnotateExpectRace, AnnotateBenignRace, AnnotateBenignRaceSized, AnnotateIgnoreReadsBegin
	NOTHING AnnotateIgnoreReadsEnd, AnnotateIgnoreWritesBegin, AnnotateIgnoreWritesEnd
	NOTHING AnnotateIgnoreSyncBegin, AnnotateIgnoreSyncEnd, AnnotatePublishMemoryRange
	NOTHING AnnotateUnpublishMemoryRange, AnnotateThreadName, AnnotateMemoryIsInitialized
	NOTHING AnnotateMemoryIsUninitialized, WTFAnnotateHappensBefore, WTFAnnotateHappensAfter
	NOTHING WTFAnnotateBenignRaceSized

	.weak	__tsan_get_current_fiber, __tsan_create_fiber
	.hidden	__tsan_get_current_fiber, __tsan_create_fiber
	.type	__tsan_get_current_fiber, @function
	.type	__tsan_create_fiber, @function
__tsan_get_current_fiber:
__tsan_create_fiber:
	.cfi_startproc
	leaq	dg_tsan_nothing(%rip), %rax
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
