/* ptrace(2). A thread has one tracer, which is the recorder. So that the program can
 * trace one of its own processes, the recorder lets that process go: its recording
 * ends there, and the tracing program's has what ptrace brought. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>
#include <linux/ptrace.h>

/* The parent is to trace this process. */
static void dg_ptrace_me(struct dg_frame *f, const struct dg_call *c)
{
	long let_go = dg_hunting() && !dg_by_turns ? 0 : dg_trap(DG_TRAP_TRACED, 0, 0);

	if (let_go) {
		dg_counter_free();
		f->rax = (uint64_t)dg_sys4(SYS_ptrace, c->args[0], c->args[1], c->args[2], c->args[3]);
		return;
	}
	if (dg_tracer_lives(DG_CONTROL))
		dg_call_answer(f, c, -EPERM); /* as the kernel answers a process that is traced */
	else
		dg_emulate(f, c);
}

static void dg_ptrace(struct dg_frame *f, const struct dg_call *c)
{
	if (DG_CONTROL->mode == DG_MODE_RECORD && c->args[0] == PTRACE_TRACEME) {
		dg_ptrace_me(f, c);
		return;
	}
	if (DG_CONTROL->mode == DG_MODE_RECORD && (!dg_hunting() || dg_by_turns) && (int32_t)c->args[1] > 0 &&
	    (c->args[0] == PTRACE_ATTACH || c->args[0] == PTRACE_SEIZE))
		dg_trap(DG_TRAP_TRACED, (uint32_t)c->args[1], 0); /* the kernel says whether the process can be traced now */
	dg_emulate(f, c);
}
