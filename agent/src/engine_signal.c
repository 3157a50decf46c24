/* Signals. The kernel has the engine's handler wherever the program set one of
 * its own, and calls it on a stack of the engine's, with all signals blocked.
 * What the program set (handlers, masks, its stack for them) is kept here, and
 * the program's frames are made here: engine_signal_frame.c.
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
#include "engine.h"
#include "engine_free.h"
#include "syscall.h"

#include "engine_signal_frame.c"
#include "engine_alone.c"
#include "engine_signal_state.c"

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

extern const char dg_text_low[] DG_HIDDEN, dg_text_high[] DG_HIDDEN, dg_exit_check[] DG_HIDDEN, dg_exit_end[] DG_HIDDEN;

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
	return mask & ~(DG_RAISED | DG_NEVER_BLOCKED);
}

static long dg_mask_set(uint64_t mask)
{
	return dg_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

/* ---- the kernel's action for each signal ---- */

static void dg_on_signal(int signal, uint8_t *info, struct dg_ucontext *uc);

#define DG_SA_RESTORER 0x04000000ull
#define DG_SA_KEPT ((uint64_t)(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART))

static struct dg_action dg_kernel_action(int signal, const struct dg_action *a)
{
	struct dg_action k = *a;

	/* Of a process that records, these come here if its tracer is gone: engine_alone.c. */
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

/* ---- a signal for the program ---- */

struct dg_delivery {
	int signal;
	enum dg_signal_place place;
	struct dg_action action;
	bool passed;      /* dg_signal_passed */
	uint64_t blocked; /* while the handler runs, besides the action's: what the interrupted call blocked */
	const uint8_t *info;
	struct dg_signal_state state;
};

#define DG_SIGNAL_ARGS 9

/* The event, to be committed; NULL: nothing is logged any more. */
static struct dg_event *dg_signal_log(const struct dg_delivery *d, const struct dg_rthread *me, const struct dg_ucontext *uc)
{
	struct dg_signal_ranges ranges = { .count = 0 };
	uint64_t pc = uc->context.registers[DG_REG_RIP], digests[3] = { 0, 0, 0 };
	struct dg_event *e;
	uint64_t *args;

	if (d->place == DG_SIGNAL_ASYNC) {
		ranges.range[ranges.count++] = dg_live_stack(me, uc->context.registers[DG_REG_RSP]);
		if (DG_CONTROL->threads == 1)
			dg_data_ranges(&ranges);
		digests[0] = dg_state_digest(&d->state, uc);
		digests[1] = dg_digest((const void *)ranges.range[0].address, ranges.range[0].length, 0);
		digests[2] = dg_data_digest(&ranges);
	}
	e = dg_event_begin(DG_EV_SIGNAL, (uint64_t)d->signal, pc, DG_SIGNAL_ARGS,
			   3 * sizeof(struct dg_payload) + DG_SIGINFO_BYTES + sizeof(d->state) +
				   ranges.count * sizeof(struct dg_range) + dg_words_room(&ranges));
	if (!e)
		return NULL;
	args = dg_event_args(e);
	args[0] = d->place;
	args[1] = pc;
	args[2] = digests[0];
	args[3] = digests[1];
	args[4] = digests[2];
	args[5] = ranges.left_out;
	args[6] = d->action.handler;
	args[7] = d->action.flags;
	args[8] = d->action.mask;
	dg_event_payload(e, DG_PAYLOAD_INFO, 0, d->info, DG_SIGINFO_BYTES);
	dg_event_payload(e, DG_PAYLOAD_REGISTERS, 0, &d->state, sizeof(d->state));
	if (ranges.count) {
		dg_event_payload(e, DG_PAYLOAD_RANGES, 0, ranges.range, ranges.count * (uint32_t)sizeof(struct dg_range));
		dg_words_log(e, &ranges);
	}
	return e;
}

/* Of a handler that runs elsewhere than it did: its frame, and the pc that the
 * log has for where it returns to. */
static struct dg_passed {
	uint64_t frame, pc;
} dg_passed[DG_RTHREADS];

/* Everything but the place is the log's. */
static void dg_signal_replay(struct dg_delivery *d, const struct dg_ucontext *uc)
{
	uint64_t pc = uc->context.registers[DG_REG_RIP], came[2] = { d->place, pc };
	const struct dg_payload *info, *state;
	const struct dg_event *e;
	const uint64_t *args;

	if (dg_free_signal(d, uc))
		return;
	e = dg_event_await(DG_EV_SIGNAL, (uint64_t)d->signal);
	if (d->passed)
		dg_passed[dg_me->index].pc = pc = came[1] = e->site;
	info = dg_logged_payload(e, 0);
	state = dg_logged_payload(e, 1);
	args = dg_logged_args(e);
	if (e->kind == DG_EV_SIGNAL &&
	    (e->args < DG_SIGNAL_ARGS || !info || info->length != DG_SIGINFO_BYTES || !state ||
	     state->length != sizeof(d->state)))
		dg_diverge(DG_DIFFERS_LOG, e, 0, 0, 0);
	dg_event_take(e, DG_EV_SIGNAL, (uint64_t)d->signal, pc, came, 2);
	d->info = dg_payload_bytes(info);
	d->action.handler = args[6];
	d->action.flags = args[7];
	d->action.mask = args[8];
	dg_copy(&d->state, dg_payload_bytes(state), sizeof(d->state));
}

/* The kernel's answer to a frame that has no room: the default action of
 * SIGSEGV, with the thread where it was. */
static void dg_no_room(struct dg_delivery *d)
{
	siginfo_t info;

	dg_action_default(SIGSEGV);
	if (d->place == DG_SIGNAL_FAULT && d->signal == SIGSEGV)
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSEGV;
	info.si_code = SI_TKILL;
	dg_requeue(SIGSEGV, (const uint8_t *)&info);
}

/* Makes the context, with which the thread will go on, enter the program's
 * handler. The thread is in the engine, and has all signals blocked. */
static void dg_deliver(struct dg_rthread *me, struct dg_ucontext *uc, struct dg_delivery *d)
{
	struct dg_frame_place place;
	struct dg_event *e = NULL;

	dg_state_of(&d->state, me, uc, d->place == DG_SIGNAL_FAULT);
	if (dg_mode == DG_MODE_REPLAY)
		dg_signal_replay(d, uc);
	else
		e = dg_signal_log(d, me, uc);
	/* This writes to the program's stack already. */
	if (!dg_frame_find(me, uc->context.registers[DG_REG_RSP], d->action.flags, &place)) {
		dg_no_room(d);
		return;
	}
	if (e)
		dg_event_commit(e);
	if (d->passed)
		dg_passed[me->index].frame = place.frame;
	else if (dg_passed[me->index].frame == place.frame)
		dg_passed[me->index].frame = 0; /* the other one was left by longjmp */
	dg_frame_write(me, &place, uc, d->info, &d->state);
	dg_frame_enter(uc, &place, d->signal, d->action.handler);
	me->mask = (d->blocked | d->action.mask | (d->action.flags & SA_NODEFER ? 0 : DG_BIT(d->signal))) & ~DG_NEVER_BLOCKED;
	uc->mask = dg_kernel_mask(me->mask);
	if (d->action.flags & SA_RESETHAND) {
		dg_actions[d->signal].handler = (uint64_t)SIG_DFL;
		dg_action_default(d->signal);
	}
}

/* What the kernel does with a signal that has no handler, or not now. False:
 * the program's handler gets it. */
static bool dg_disposed(struct dg_rthread *me, struct dg_ucontext *uc, const struct dg_delivery *d)
{
	uint64_t handler = d->action.handler;
	bool fault = d->place == DG_SIGNAL_FAULT, blocked = me->mask & DG_BIT(d->signal) & DG_RAISED;

	if (handler > (uint64_t)SIG_IGN && !blocked)
		return false;
	if (fault) {
		dg_action_default(d->signal); /* the instruction raises it again */
	} else if (blocked) {
		uc->mask |= DG_BIT(d->signal); /* until the program unblocks it */
		dg_mask_set(DG_ALL | (uc->mask & DG_RAISED)); /* or it came back here at once */
		dg_requeue(d->signal, d->info);
	} else if (handler == (uint64_t)SIG_DFL) {
		dg_requeue(d->signal, d->info);
	}
	return true;
}

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

/* ---- on the way out of the engine ---- */

/* What the thread had blocked in the call that the signal ended: the handler
 * runs with that, and the program goes on with its own mask. */
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

/* The registers with which entry.S would leave. */
static void dg_context_of(struct dg_ucontext *uc, const struct dg_frame *f, uint8_t *area)
{
	uint64_t *r = uc->context.registers;

	memset(uc, 0, sizeof(*uc));
	uc->flags = DG_UC_FLAGS;
	r[DG_REG_RAX] = f->rax;
	r[DG_REG_RBX] = f->rbx;
	r[DG_REG_RCX] = f->kind == DG_ENTRY_TSC ? f->rcx : f->rip;
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
	uc->context.cs = DG_USER_CS;
	uc->context.ss = DG_USER_SS;
	uc->context.fpstate = (uint64_t)area;
	dg_xstate_save(area);
	if (f->kind == DG_ENTRY_CALL)
		dg_xstate_drop_vectors(area);
	dg_xstate_seal(area);
}

/* Leaves with a context of the engine's. All signals are blocked, so what is
 * pending comes when the context's own mask counts, in the program. */
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

/* me->pending in a replay, of a signal that dg_signal_passed is for. */
#define DG_PENDING_PASSED 2u

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

/* An operation without an event (a release) is no place for a replay: the event
 * before it is elsewhere in the program. The kernel gives the signals once more,
 * where the thread goes on, and there they are asynchronous. */
static bool dg_given_back(struct dg_rthread *me, const struct dg_frame *f, struct dg_ucontext *uc)
{
	uint8_t *area = (uint8_t *)uc->context.fpstate;

	if (dg_mode != DG_MODE_RECORD || f->kind != DG_ENTRY_CALL || dg_kept_behind[me->index] != me->ordinal)
		return false;
	for (uint32_t i = 0; i < me->pending; i++)
		if (DG_RAISED & DG_BIT(dg_info_word(me->infos[i], 0)))
			return false; /* not blocked, so it would come back here */
	for (uint32_t i = 0; i < me->pending; i++)
		dg_requeue(dg_info_word(me->infos[i], 0), me->infos[i]);
	uc->mask = dg_kernel_mask(me->mask);
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
	if (!dg_given_back(me, f, &uc))
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

/* sigreturn, with the program's context. Whatever the program wrote there is
 * what it goes on with. */
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
	}
	dg_mask_set(DG_ALL);
	me->mask = program->mask & ~DG_NEVER_BLOCKED;
	/* restore_altstack, which refuses to change the one it stands on. */
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
	dg_leave_to(me, &uc);
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
 * have is no place: what comes behind it is looked for at once. */
static const struct dg_event *dg_signal_next(void)
{
	struct dg_rthread *me = dg_me;
	const struct dg_event *e = dg_event_peek();

	while (e && (e->flags & DG_EVENT_SOFT) && (uint64_t)e + e->length < me->next_end) {
		e = (const struct dg_event *)((uint64_t)e + e->length);
		if (!dg_event_sound(e, me->next_end))
			return NULL;
	}
	return e && e->kind == DG_EV_SIGNAL && e->args >= DG_SIGNAL_ARGS ? e : NULL;
}

/* For a thread that would come to another event than e. A signal that came in a
 * futex call which the replay has passed by, as it found the word otherwise,
 * comes before the operation that the thread is at, which is made again. */
static void dg_signal_passed(const struct dg_event *e)
{
	struct dg_rthread *me = dg_me;
	struct dg_frame *f = (struct dg_frame *)me->inside;

	if (e->kind != DG_EV_SIGNAL || e->args < DG_SIGNAL_ARGS || dg_logged_args(e)[0] != DG_SIGNAL_EVENT || !f ||
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

/* The thread may come to the place sooner than another, in the order of events
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

#include "engine_signal_calls.c"
