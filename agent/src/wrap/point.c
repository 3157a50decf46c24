/* Points of the code: what an instrumented program calls before each access, by way
 * of its own runtime (agent/tsan), which finds these functions by their names.
 *
 * They are called as no others are: every register stays but r11, which is 0
 * after them, and the flags, which are those of that instruction. So the program
 * has the same after a point whether the engine was entered there or not. */
#include "agent.h"
#include "engine/engine.h"

/* Numbers in the assembly below. */
_Static_assert(offsetof(struct dg_rthread, points) == 272, "points");
_Static_assert(offsetof(struct dg_rthread, raw) == 92, "raw");
_Static_assert(DG_MODE_OFF == 0, "mode");

__asm__(
	".macro	POINT name, entry\n"
	"	.globl	\\name\n"
	"	.type	\\name, @function\n"
	"	.balign	64\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	movq	dg_me@gottpoff(%rip), %r11\n"
	"	movq	%fs:(%r11), %r11\n"
	"	testq	%r11, %r11\n"
	"	je	1f\n"
	"	subq	$1, 272(%r11)\n"
	"	je	2f\n"
	"1:	xorl	%r11d, %r11d\n"
	"	ret\n"
	"2:	cmpl	$0, dg_mode(%rip)\n"
	"	je	1b\n"
	"	cmpl	$0, 92(%r11)\n"
	"	jne	1b\n"
	"	jmp	\\entry\n"
	"	.cfi_endproc\n"
	"	.size	\\name, .-\\name\n"
	".endm\n"
	".text\n"
	/* At a call of the program's: the point's pc is where this returns to. */
	"	POINT	diagnose_point, dg_entry_point\n"
	/* At a call within a function of the runtime's: it is where that returns to. */
	"	POINT	diagnose_point_within, dg_entry_point_within\n"
	".purgem	POINT\n");
