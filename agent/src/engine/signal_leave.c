/* Leaving the engine, where the signals that were kept come, and leaving
 * a handler. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/free.h"
#include "syscall.h"

/* What the thread had blocked in the call that the signal ended: the handler
 * runs with that, and the program continues with its own mask. */
static uint64_t dg_mask_of_call(const struct dg_rthread *me, const struct dg_frame *f)
{
	uint64_t at = 0;

	if ((f->kind != DG_ENTRY_SYSCALL && f->kind != DG_ENTRY_INSN) || (int64_t)f->rax != -EINTR)
		return me->mask;
	switch (f->again_rax) {
	case SYS_rt_sigsuspend:
		at = f->rdi;
		break;
	case SYS_ppoll:
		at = f->r10;
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		at = f->r8;
		break;
	case SYS_pselect6:
		at = f->r9 ? *(const uint64_t *)f->r9 : 0;
		break;
	}
	return at ? *(const uint64_t *)at & ~DG_NEVER_BLOCKED : me->mask;
}

/* The registers with which engine/entry.S would leave. A call that is made again has its arguments. */
static void dg_registers_of(struct dg_ucontext *uc, const struct dg_frame *f)
{
	bool again = f->kind == DG_ENTRY_CALL && f->rip == f->origin;
	uint64_t *r = uc->context.registers;

	r[DG_REG_RAX] = f->rax;
	r[DG_REG_RBX] = f->rbx;
	r[DG_REG_RCX] = again || f->kind == DG_ENTRY_TSC || f->kind == DG_ENTRY_POINT ? f->rcx : f->rip;
	r[DG_REG_RDX] = f->rdx;
	r[DG_REG_RSI] = f->rsi;
	r[DG_REG_RDI] = f->rdi;
	r[DG_REG_RBP] = f->rbp;
	r[DG_REG_R8] = f->r8;
	r[DG_REG_R9] = f->r9;
	r[DG_REG_R10] = f->r10;
	r[DG_REG_R11] = f->r11;
	r[DG_REG_R12] = f->r12;
	r[DG_REG_R13] = f->r13;
	r[DG_REG_R14] = f->r14;
	r[DG_REG_R15] = f->r15;
	r[DG_REG_RIP] = f->rip;
	r[DG_REG_RSP] = f->rsp;
	r[DG_REG_FLAGS] = f->rflags;
}

static void dg_context_of(struct dg_ucontext *uc, const struct dg_frame *f, uint8_t *area)
{
	memset(uc, 0, sizeof(*uc));
	uc->flags = DG_UC_FLAGS;
	dg_registers_of(uc, f);
	uc->context.cs = DG_USER_CS;
	uc->context.ss = DG_USER_SS;
	uc->context.fpstate = (uint64_t)area;
	dg_xstate_save(area);
	if (f->kind == DG_ENTRY_CALL)
		dg_xstate_drop_vectors(area);
	dg_xstate_seal(area);
}

/* Leaves with a context of the engine's. All signals are blocked, so a
 * pending one comes when the context's own mask counts, in the program. */
__attribute__((noreturn)) static void dg_leave_to(struct dg_rthread *me, struct dg_ucontext *uc)
{
	dg_turn_leave();
	uc->stack_low = (uint64_t)me + DG_SIGNAL_STACK_AT;
	uc->stack_size = DG_SIGNAL_STACK;
	uc->stack_flags = 0;
	me->pending = 0;
	me->inside = 0;
	dg_resume(uc);
}

/* Whatever was kept, or the log has at this place. */
static void dg_deliver_kept(struct dg_rthread *me, struct dg_ucontext *uc, uint64_t blocked)
{
	uc->mask = dg_kernel_mask(me->mask);
	if (dg_free_deliver(me, uc, blocked))
		return;
	if (dg_mode == DG_MODE_REPLAY) {
		const struct dg_event *e = dg_event_peek();

		/* Taking one tells whether the next is another. */
		while (me->pending && e) {
			struct dg_delivery d = { .place = DG_SIGNAL_EVENT, .blocked = blocked, .signal = (int)e->object,
						 .passed = me->pending == DG_PENDING_PASSED };

			me->pending = 0;
			dg_deliver(me, uc, &d);
			blocked = me->mask;
			dg_point_hold(me);
			e = dg_event_peek();
		}
		return;
	}
	for (uint32_t i = 0; i < me->pending; i++) {
		int signal = dg_info_word(me->infos[i], 0);
		struct dg_delivery d = {
			.place = DG_SIGNAL_EVENT, .blocked = blocked, .signal = signal, .info = me->infos[i],
			.action = dg_actions[signal],
		};

		if (dg_disposed(me, uc, &d))
			continue;
		dg_deliver(me, uc, &d);
		blocked = me->mask;
	}
}

/* An operation without an event (a release, a point at which the thread may give way) is no place for a replay: the event
 * before it is elsewhere in the program. Nor is a point at an instruction, where a
 * replay has the thread reach its event from outside of the engine. The kernel
 * gives the signals once more, where the thread continues, and there they are
 * asynchronous. */
static bool dg_given_back(struct dg_rthread *me, const struct dg_frame *f, struct dg_ucontext *uc)
{
	uint8_t *area = (uint8_t *)uc->context.fpstate;
	bool at_instruction = f->kind == DG_ENTRY_POINT && (f->again_rax || dg_hunt_holds(me));

	if (dg_mode != DG_MODE_RECORD || (f->kind != DG_ENTRY_CALL && f->kind != DG_ENTRY_POINT) ||
	    (!at_instruction && dg_kept_behind[me->index] != me->ordinal))
		return false;
	/* After the log's end no event is counted: a wait that is made again for its signal would be so for ever. */
	if (!at_instruction && __atomic_load_n(&DG_CONTROL->stopped, __ATOMIC_RELAXED))
		return false;
	for (uint32_t i = 0; i < me->pending; i++)
		if (DG_RAISED & DG_BIT(dg_info_word(me->infos[i], 0)))
			return false; /* not blocked, so it would return here */
	for (uint32_t i = 0; i < me->pending; i++)
		dg_requeue(dg_info_word(me->infos[i], 0), me->infos[i]);
	uc->mask = dg_hunt_holds(me) ? DG_ALL : dg_kernel_mask(me->mask);
	/* With the vectors that a replay has there. */
	dg_xstate_save(area);
	dg_xstate_seal(area);
	return true;
}

void dg_leave(struct dg_frame *f)
{
	struct dg_rthread *me = dg_me;
	struct dg_ucontext uc;
	uint64_t blocked = dg_mask_of_call(me, f);
	uint8_t area[DG_XSTATE_MOST] __attribute__((aligned(64)));

	/* In a replay it is not blocked yet. */
	dg_mask_set(DG_ALL);
	dg_context_of(&uc, f, area);
	if (dg_given_back(me, f, &uc))
		dg_point_give_back(f, &uc);
	else
		dg_deliver_kept(me, &uc, blocked);
	dg_leave_to(me, &uc);
}

/* The pc that the log has for where a handler returns to. */
static uint64_t dg_returns_to(const struct dg_rthread *me, uint64_t uc, uint64_t pc)
{
	struct dg_passed *passed = &dg_passed[me->index];

	if (passed->frame != uc - offsetof(struct dg_sigframe, uc))
		return pc;
	passed->frame = 0;
	return passed->pc;
}

/* Of alarm, setitimer or timer_create. */
static bool dg_is_timer(int signal, const uint8_t *info)
{
	int32_t code = dg_info_word(info, 8);

	return code == SI_TIMER || (code == DG_SI_KERNEL && (signal == SIGALRM || signal == SIGVTALRM || signal == SIGPROF));
}

static void dg_timer_returned(struct dg_rthread *me)
{
	struct timespec t = { 0, 0 };

	dg_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	me->timer_returned = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* sigreturn, with the program's context. Whatever the program wrote there is
 * what it continues with. */
void dg_handler_returned(struct dg_rthread *me, uint64_t at, struct dg_frame *f)
{
	const struct dg_ucontext *program = (const struct dg_ucontext *)at;
	struct dg_ucontext uc;
	uint8_t area[DG_XSTATE_MOST] __attribute__((aligned(64)));
	const uint8_t *info = (const uint8_t *)at + sizeof(uc);
	uint64_t signal = (uint32_t)dg_info_word(info, 0), site;
	struct dg_event *e;

	dg_copy(&uc, program, sizeof(uc));
	dg_frame_of(f, &uc);
	if (dg_mode == DG_MODE_REPLAY) {
		site = dg_returns_to(me, at, f->rip);
		dg_event_take(dg_event_await(DG_EV_SIGNAL_END, signal), DG_EV_SIGNAL_END, signal, site, NULL, 0);
	} else {
		e = dg_event_begin(DG_EV_SIGNAL_END, signal, f->rip, 0, 0);
		if (e)
			dg_event_commit(e);
		if (dg_hunting())
			dg_hunt_signalled();
		if (dg_is_timer((int)signal, info))
			dg_timer_returned(me);
	}
	dg_mask_set(DG_ALL);
	me->mask = program->mask & ~DG_NEVER_BLOCKED;
	/* restore_altstack, which refuses to change the one in use. */
	if (!dg_on_alternate(me, at)) {
		bool off = program->stack_flags & SS_DISABLE;

		me->alt_low = off ? 0 : program->stack_low;
		me->alt_size = off ? 0 : program->stack_size;
		me->alt_flags = off ? 0 : (uint32_t)program->stack_flags & SS_AUTODISARM;
	}
	uc.flags = DG_UC_FLAGS;
	uc.context.registers[DG_REG_FLAGS] &= ~(DG_FLAG_TRAP | DG_FLAG_RESUME);
	dg_xstate_copy(area, (uint8_t *)uc.context.fpstate);
	uc.context.fpstate = (uint64_t)area;
	dg_deliver_kept(me, &uc, me->mask);
	uc.context.registers[DG_REG_RIP] = dg_atomic_way(uc.context.registers[DG_REG_RIP]);
	dg_leave_to(me, &uc);
}
