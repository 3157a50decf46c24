/* A process whose tracer was killed, or has detached. A fault that is meant for the
 * tracer is a signal then, which would kill the process.
 * The log ends where the first answer is missing; the program continues. */
#include "engine/engine.h"
#include "syscall.h"

#include <signal.h>
#include <sys/prctl.h>

#define DG_SI_KERNEL 0x80

extern const char dg_int3_at[] DG_HIDDEN;

static bool dg_tracer_lives(struct dg_control *c);

/* The calling thread, and whatever it makes or executes, may read the counter. */
static void dg_counter_free(void)
{
	dg_sys2(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE);
}

/* Before the calling thread executes a program, or lends its memory to a child
 * that will. The tracer would free the counter for it, whose first reader is
 * ld.so. */
static void dg_counter_unless_traced(void)
{
	if (DG_CONTROL->mode == DG_MODE_RECORD && !dg_tracer_lives(DG_CONTROL)) {
		dg_counter_free();
		dg_log_stop(DG_LIMIT_TRACER, "the recorder is gone");
	}
}

/* Whether the tracer would have sent a thread to the engine from here. */
static bool dg_trap_site(uint64_t pc)
{
	const struct dg_control *c = DG_CONTROL;
	const struct dg_site_patch *p = (const struct dg_site_patch *)c->patches;

	for (uint32_t i = 0; i < c->patches_done; i++)
		if (p[i].resume == pc + 2)
			return *(const uint16_t *)pc == 0x0b0f;
	return false;
}

/* A fault that was meant for the tracer: true if the thread continues. */
static bool dg_unanswered(int signal, int code, uint64_t *registers)
{
	uint64_t pc = registers[DG_REG_RIP];
	const uint8_t *at = (const uint8_t *)pc;

	if (DG_CONTROL->mode == DG_MODE_REPLAY)
		return false;
	if (signal == SIGTRAP && pc == (uint64_t)dg_int3_at + 1) {
		registers[DG_REG_RAX] = 0;
		return true;
	}
	if (signal == SIGSEGV && code == DG_SI_KERNEL && dg_readable(pc, 2) && at[0] == 0x0f &&
	    (at[1] == 0x31 || (at[1] == 0x01 && dg_readable(pc, 3) && at[2] == 0xf9))) {
		dg_counter_free();
		if (dg_me && dg_mode == DG_MODE_RECORD)
			dg_log_stop(DG_LIMIT_TRACER, "the recorder is gone");
		return true;
	}
	if (signal == SIGILL && dg_trap_site(pc)) {
		registers[DG_REG_RCX] = pc;
		registers[DG_REG_RIP] = DG_CONTROL->insn_pc;
		return true;
	}
	return false;
}
