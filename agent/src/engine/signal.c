/* Signals. The kernel has the engine's handler wherever the program set one of
 * its own, and calls it on a stack of the engine's, with all signals blocked.
 * What the program set (handlers, masks, its stack for them) is kept here, and
 * the program's frames are made here: engine/signal_frame.c.
 *
 * A signal finds a thread
 *  - in the engine: its siginfo is kept and all signals stay blocked until
 *    the thread leaves (dg_leave), which is a place that a replay finds by
 *    itself: DG_SIGNAL_EVENT;
 *  - elsewhere: the place is told by its state, DG_SIGNAL_ASYNC, or, where an
 *    instruction raised it, comes by itself, DG_SIGNAL_FAULT.
 *
 * In a replay the controller keeps all signals away but those that the log
 * places, so of the handler's three ways only the last two are taken.
 *
 * Nothing here counts how deep handlers are nested: they may be left by longjmp,
 * or never. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/free.h"
#include "syscall.h"

extern const char dg_text_low[] DG_HIDDEN, dg_text_high[] DG_HIDDEN, dg_exit_check[] DG_HIDDEN, dg_exit_end[] DG_HIDDEN;

/* ---- the kernel calls ---- */

static bool dg_pc_in(uint64_t pc, const char *low, const char *high)
{
	return pc >= (uint64_t)low && pc < (uint64_t)high;
}

/* The tracer has signals wait until the thread is out of it. */
static bool dg_in_library(uint64_t pc)
{
	return dg_pc_in(pc, __ehdr_start, __etext);
}

static bool dg_in_engine(const struct dg_rthread *me, uint64_t pc)
{
	return me->inside || dg_pc_in(pc, dg_text_low, dg_text_high) || dg_pc_in(pc, dg_restorer_low, dg_restorer_high);
}

/* The last event of each thread when the engine kept its last signal. */
static uint64_t dg_kept_behind[DG_RTHREADS];

/* Keeps the signal until the thread leaves the engine. */
static void dg_keep(struct dg_rthread *me, const uint8_t *info, struct dg_ucontext *uc)
{
	uint64_t *pc = &uc->context.registers[DG_REG_RIP];

	if (me->pending < sizeof(me->infos) / sizeof(me->infos[0]))
		dg_copy(me->infos[me->pending++], info, DG_SIGINFO_BYTES);
	dg_kept_behind[me->index] = me->ordinal;
	dg_turns_ring();
	uc->mask = DG_ALL;
	if (*pc >= (uint64_t)dg_blocking_low && *pc <= (uint64_t)dg_blocking_insn) {
		*pc = (uint64_t)dg_blocking_done;
		uc->context.registers[DG_REG_RAX] = (uint64_t)DG_NOT_MADE;
	} else if (dg_pc_in(*pc, dg_exit_check, dg_exit_end)) {
		*pc = (uint64_t)dg_exit_check;
	}
}

static void dg_frame_of(struct dg_frame *f, const struct dg_ucontext *uc)
{
	const uint64_t *r = uc->context.registers;

	*f = (struct dg_frame){
		.rax = r[DG_REG_RAX], .rbx = r[DG_REG_RBX], .rcx = r[DG_REG_RCX], .rdx = r[DG_REG_RDX],
		.rsi = r[DG_REG_RSI], .rdi = r[DG_REG_RDI], .rbp = r[DG_REG_RBP], .r8 = r[DG_REG_R8],
		.r9 = r[DG_REG_R9], .r10 = r[DG_REG_R10], .r11 = r[DG_REG_R11], .r12 = r[DG_REG_R12],
		.r13 = r[DG_REG_R13], .r14 = r[DG_REG_R14], .r15 = r[DG_REG_R15], .rip = r[DG_REG_RIP],
		.rsp = r[DG_REG_RSP], .rflags = r[DG_REG_FLAGS], .kind = DG_ENTRY_SIGNAL,
	};
}

/* Before the thread's first event, which unblocks it: dg_signal_thread_start.
 * A thread that the engine does not know has what the kernel has. */
static void dg_early_signal(const struct dg_rthread *me, int signal, uint8_t *info, struct dg_ucontext *uc)
{
	void (*handler)(int, void *, void *) = (void (*)(int, void *, void *))dg_actions[signal].handler;

	if ((uint64_t)handler == (uint64_t)SIG_DFL) {
		dg_action_default(signal);
		if (!dg_is_fault(signal, info))
			dg_requeue(signal, info);
	} else if (!me) {
		if ((uint64_t)handler > (uint64_t)SIG_IGN)
			handler(signal, info, uc);
	} else if (dg_is_fault(signal, info)) {
		dg_action_default(signal);
	} else {
		uc->mask = DG_ALL;
		dg_requeue(signal, info);
	}
}

/* The return from here is the kernel's rt_sigreturn, with the context as it is
 * then. */
static void dg_on_signal(int signal, uint8_t *info, struct dg_ucontext *uc)
{
	struct dg_rthread *me = dg_me;
	struct dg_frame frame;
	struct dg_delivery d = { .signal = signal, .info = info, .action = dg_actions[signal] };
	bool placed; /* by the controller: it has a handler when its turn comes */

	if (dg_is_fault(signal, info) && dg_unanswered(signal, dg_info_word(info, 8), uc->context.registers))
		return;
	if (dg_by_turns && signal == DG_TURN_SIGNAL && dg_info_word(info, 8) == SI_TIMER && dg_info_word(info, 24) == (int32_t)DG_TURN_VALUE) {
		dg_turns_untraced(me, uc);
		return;
	}
	if (!me || me->state == DG_R_STARTING) {
		dg_early_signal(me, signal, info, uc);
		return;
	}
	d.place = dg_is_fault(signal, info) ? DG_SIGNAL_FAULT : DG_SIGNAL_ASYNC;
	placed = dg_mode == DG_MODE_REPLAY && d.place == DG_SIGNAL_ASYNC && dg_signal_comes();
	/* It ends the process where the thread is, in the engine or not. */
	if (!placed && d.place == DG_SIGNAL_ASYNC && d.action.handler == (uint64_t)SIG_DFL && !(me->mask & DG_BIT(signal))) {
		dg_action_default(signal);
		dg_requeue(signal, info);
		return;
	}
	if (d.place == DG_SIGNAL_FAULT)
		dg_atomic_failed(me);
	if (dg_in_engine(me, uc->context.registers[DG_REG_RIP])) {
		if (d.place == DG_SIGNAL_FAULT)
			dg_action_default(signal);
		else if (dg_mode == DG_MODE_RECORD)
			dg_keep(me, info, uc);
		return;
	}
	if (!placed && dg_disposed(me, uc, &d))
		return;
	if (d.place == DG_SIGNAL_ASYNC && dg_in_library(uc->context.registers[DG_REG_RIP]))
		dg_log_stop(DG_LIMIT_PLACE, "a signal came to the recorder's own code, where no replay finds its place");
	dg_frame_of(&frame, uc);
	d.blocked = me->mask;
	me->inside = (uint64_t)&frame;
	dg_deliver(me, uc, &d);
	dg_turn_leave();
	me->inside = 0;
}

/* ---- what other parts of the engine call ---- */

static bool dg_interrupted(void)
{
	return dg_me->pending != 0;
}

static void dg_again(struct dg_frame *f)
{
	f->rip = f->origin;
	f->rax = f->again_rax;
	f->rsp = f->again_rsp;
}

/* The thread's next event, if that is a signal. A futex call that a replay may not
 * have is no place: what follows it is looked for at once. So is what comes
 * after a signal that the controller raises. */
static const struct dg_event *dg_signal_next(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_event_peek();

	while (e && (e->flags & (DG_EVENT_SOFT | DG_EVENT_RAISED)) && (uint64_t)e + e->length < me->next_end) {
		e = (const struct dg_event *)((uint64_t)e + e->length);
		if (!dg_event_sound(e, me->next_end))
			return NULL;
	}
	return e && e->kind == DG_EV_SIGNAL && e->args >= DG_SIGNAL_ARGS ? e : NULL;
}

/* For a thread that would reach another event than e. A signal that came in a
 * futex call which the replay has passed by, as it found the word otherwise,
 * comes before the operation that the thread is at, which is made again. */
static void dg_signal_passed(const struct dg_event *e)
{
	struct dg_rthread *me = dg_me;
	struct dg_frame *f = (struct dg_frame *)me->inside;

	if (e->kind != DG_EV_SIGNAL || e->flags & DG_EVENT_RAISED || e->args < DG_SIGNAL_ARGS || dg_logged_args(e)[0] != DG_SIGNAL_EVENT || !f ||
	    (f->kind != DG_ENTRY_CALL && f->kind != DG_ENTRY_SYSCALL && f->kind != DG_ENTRY_INSN))
		return;
	dg_again(f);
	me->pending = DG_PENDING_PASSED;
	dg_leave(f);
}

static bool dg_signal_comes(void)
{
	const struct dg_event *e = dg_signal_next();

	return e && dg_logged_args(e)[0] == DG_SIGNAL_ASYNC;
}

/* The thread may reach the place sooner than another, in the order of events
 * before it, sets the program's action. The signal is not to end the process then. */
static void dg_signal_expect(int signal)
{
	struct dg_action a;

	if (dg_sys4(SYS_rt_sigaction, signal, 0, &a, 8) || a.handler == (uint64_t)dg_on_signal)
		return;
	a = dg_kernel_action(signal, &(struct dg_action){ .handler = (uint64_t)dg_on_signal });
	dg_sys4(SYS_rt_sigaction, signal, &a, 0, 8);
}

static void dg_signal_upcoming(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_signal_next();

	if (dg_free_upcoming() || !e)
		return;
	if (dg_logged_args(e)[0] == DG_SIGNAL_EVENT)
		me->pending = (const uint8_t *)e == (const uint8_t *)me->next;
	else if (dg_logged_args(e)[0] == DG_SIGNAL_ASYNC && !me->fresh) {
		dg_signal_expect((int)e->object);
		dg_trap(DG_TRAP_ARM, me->index, (uint64_t)e);
	}
}
