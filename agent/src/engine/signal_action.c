/* What the program set for each signal, and what the kernel is given instead. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "syscall.h"

#define DG_SIGNALS 64
#define DG_BIT(signal) (1ull << ((signal) - 1))
/* The tool raises these, for its questions (int3), its breakpoints, calls that
 * could not be patched (ud2) and the time-stamp counter; the kernel takes the
 * handler away from who blocks or ignores a signal that an instruction raises. */
#define DG_RAISED (DG_BIT(SIGTRAP) | DG_BIT(SIGSEGV) | DG_BIT(SIGILL))
#define DG_FAULTS (DG_RAISED | DG_BIT(SIGBUS) | DG_BIT(SIGFPE))
#define DG_NEVER_BLOCKED (DG_BIT(SIGKILL) | DG_BIT(SIGSTOP))
/* What the kernel is asked to block instead of everything. */
#define DG_ALL (~(DG_RAISED | DG_NEVER_BLOCKED))

/* struct kernel_sigaction */
struct dg_action {
	uint64_t handler, flags, restorer, mask;
};
_Static_assert(sizeof(struct dg_action) == 32, "the recorder reads the handlers");

/* What the program set; index 0 is unused. */
static struct dg_action dg_actions[DG_SIGNALS + 1];

static int32_t dg_info_word(const uint8_t *info, uint32_t at)
{
	return *(const int32_t *)(const void *)(info + at);
}

static bool dg_is_fault(int signal, const uint8_t *info)
{
	return (DG_FAULTS & DG_BIT(signal)) && dg_info_word(info, 8) > 0;
}

static uint64_t dg_kernel_mask(uint64_t mask)
{
	return mask & ~(DG_RAISED | DG_NEVER_BLOCKED | (dg_by_turns ? DG_BIT(DG_TURN_SIGNAL) : 0));
}

static long dg_mask_set(uint64_t mask)
{
	return dg_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

static void dg_on_signal(int signal, uint8_t *info, struct dg_ucontext *uc);

#define DG_SA_RESTORER 0x04000000ull
#define DG_SA_KEPT ((uint64_t)(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART))

static struct dg_action dg_kernel_action(int signal, const struct dg_action *a)
{
	struct dg_action k = *a;

	/* Of a process that records, these come here if its tracer is gone: engine/alone.c. */
	bool raised = DG_RAISED & DG_BIT(signal);

	if (a->handler == (uint64_t)SIG_DFL && !(raised && DG_CONTROL->mode != DG_MODE_REPLAY))
		return k;
	if (a->handler == (uint64_t)SIG_IGN && !raised)
		return k;
	k.handler = (uint64_t)dg_on_signal;
	k.flags = (a->flags & DG_SA_KEPT) | SA_SIGINFO | SA_ONSTACK | DG_SA_RESTORER;
	k.restorer = (uint64_t)dg_kernel_restorer;
	k.mask = DG_ALL;
	return k;
}

static void dg_action_default(int signal)
{
	struct dg_action a = { .handler = (uint64_t)SIG_DFL, .flags = DG_SA_RESTORER, .restorer = (uint64_t)dg_kernel_restorer };

	dg_sys4(SYS_rt_sigaction, signal, &a, 0, 8);
}

/* Gives the signal to the thread once more. */
static void dg_requeue(int signal, const uint8_t *info)
{
	dg_sys4(SYS_rt_tgsigqueueinfo, dg_sys0(SYS_getpid), dg_sys0(SYS_gettid), signal, info);
}
