/* Signals of a free process: those that its log has come where they came, or, if
 * that was between two events, after the first of them; and those that it sends
 * itself. Where a signal that the log does not have ends the process, the
 * experiment ends. */
#include "engine/free.h"

#include <signal.h>

/* The kernel's default action is to continue. */
#define DG_FREE_IGNORED (DG_BIT(SIGCHLD) | DG_BIT(SIGURG) | DG_BIT(SIGWINCH) | DG_BIT(SIGCONT) | DG_BIT(SIGSTOP) | DG_BIT(SIGTSTP) | \
			 DG_BIT(SIGTTIN) | DG_BIT(SIGTTOU))

static void dg_free_send(struct dg_rthread *t, uint32_t signal)
{
	struct dg_free_thread *x = dg_free_of(t);

	if (x->sents < DG_FREE_SENT)
		x->sent[x->sents++] = signal;
	t->pending = 1;
}

static bool dg_free_ignores(uint32_t signal)
{
	uint64_t handler = dg_actions[signal].handler;

	return handler == (uint64_t)SIG_IGN || (handler == (uint64_t)SIG_DFL && DG_FREE_IGNORED & DG_BIT(signal));
}

/* Whether sending it to a thread of the process ends that. */
static bool dg_free_fatal(uint32_t signal)
{
	return signal && signal <= DG_SIGNALS && dg_actions[signal].handler == (uint64_t)SIG_DFL && !dg_free_ignores(signal);
}

__attribute__((noreturn)) static void dg_free_dies(uint32_t signal)
{
	for (;;) {
		dg_trap(DG_TRAP_FATAL, dg_me->index, signal);
		if (!DG_CONTROL->tracer)
			dg_sys1(SYS_exit_group, 255);
	}
}

/* Sent by the calling thread to a thread of the process. */
static void dg_free_raise(struct dg_rthread *t, uint32_t signal)
{
	const struct dg_event *next = dg_signal_next();

	if (!signal || signal > DG_SIGNALS || dg_free_ignores(signal))
		return;
	if (t == dg_me && next && next->object == signal)
		return; /* comes from the log */
	if (!(t->mask & DG_BIT(signal)))
		dg_free_send(t, signal);
}

static void dg_free_deliver_sent(struct dg_rthread *me, struct dg_ucontext *uc, uint64_t blocked)
{
	struct dg_free_thread *x = dg_free_of(me);
	uint8_t info[DG_SIGINFO_BYTES] __attribute__((aligned(8)));

	while (x->sents) {
		siginfo_t *s = (siginfo_t *)(void *)info;
		struct dg_delivery d = { .place = DG_SIGNAL_EVENT, .blocked = blocked, .signal = (int)x->sent[0], .info = info };

		memset(info, 0, sizeof(info));
		s->si_signo = d.signal;
		s->si_code = SI_TKILL;
		s->si_pid = (int)DG_CONTROL->pid;
		d.action = dg_actions[d.signal];
		x->sents--;
		dg_copy(x->sent, x->sent + 1, x->sents * sizeof(x->sent[0]));
		if (d.action.handler > (uint64_t)SIG_IGN)
			dg_deliver(me, uc, &d);
		blocked = me->mask;
	}
}

static bool dg_free_deliver(struct dg_rthread *me, struct dg_ucontext *uc, uint64_t blocked)
{
	struct dg_free_thread *x = dg_free_of(me);
	const struct dg_event *e;

	if (!dg_free())
		return false;
	for (;;) {
		bool late = x->late;

		e = late ? (const struct dg_event *)x->late : dg_signal_next();
		if (!e || dg_logged_args(e)[0] == DG_SIGNAL_FAULT)
			break;
		x->late = 0;
		x->delivers = e;
		if (!late) {
			x->found = e;
			x->passed = 0;
			x->far = false;
			dg_free_count(me);
			dg_free_use(me, e);
		}
		struct dg_delivery d = { .place = DG_SIGNAL_EVENT, .blocked = blocked, .signal = (int)e->object };

		dg_deliver(me, uc, &d);
		x->delivers = NULL;
		blocked = me->mask;
	}
	dg_free_deliver_sent(me, uc, blocked);
	me->pending = 0;
	return true;
}

/* The event says what the program was told and what handler it had. */
static bool dg_free_signal_logged(struct dg_delivery *d, const struct dg_event *e)
{
	const struct dg_payload *info = dg_logged_payload(e, 0);
	const uint64_t *args = dg_logged_args(e);

	if (e->kind != DG_EV_SIGNAL || e->args < DG_SIGNAL_ARGS || !info || info->length != DG_SIGINFO_BYTES)
		return false;
	d->info = dg_payload_bytes(info);
	d->action.handler = args[6];
	d->action.flags = args[7];
	d->action.mask = args[8];
	return true;
}

/* Whether it came where the log has it. */
static bool dg_free_signal_fits(const struct dg_event *e, const struct dg_delivery *d, uint64_t pc)
{
	return e && e->kind == DG_EV_SIGNAL && e->object == (uint64_t)d->signal && e->args >= DG_SIGNAL_ARGS &&
	       dg_logged_args(e)[0] == d->place && dg_logged_args(e)[1] == pc;
}

/* The signal of the log that the controller raises now, with the events of its
 * handler, which can be found from here on; NULL: the log has none. */
static const struct dg_event *dg_free_raised(struct dg_rthread *me, int signal)
{
	struct dg_free_thread *x = dg_free_of(me);
	const struct dg_event *e = x->raised ? (const struct dg_event *)x->raised : dg_event_peek(), *found = NULL;
	uint32_t depth = 0;

	x->raised = 0;
	for (; e; e = dg_free_behind(me, e)) {
		if (!(e->flags & DG_EVENT_RAISED)) {
			if (found || !dg_free_aside(e))
				break;
			continue;
		}
		if (!found && (e->kind != DG_EV_SIGNAL || e->object != (uint64_t)signal))
			break;
		if (!found)
			found = e;
		((struct dg_event *)(uint64_t)e)->flags &= (uint8_t)~DG_EVENT_RAISED;
		depth += e->kind == DG_EV_SIGNAL;
		if (e->kind == DG_EV_SIGNAL_END && --depth == 0)
			break;
	}
	return found;
}

/* Of a thread that the controller raises a signal in. What the program is told is the
 * log's, if that has the signal. */
static void dg_free_raise_here(struct dg_delivery *d, uint64_t pc)
{
	struct dg_rthread *me = dg_me;
	struct dg_free_thread *x = dg_free_of(me);
	struct dg_event came = { .kind = DG_EV_SIGNAL, .object = (uint64_t)d->signal, .site = pc };
	const struct dg_event *e;

	DG_CONTROL->raised = 0;
	dg_free_begin();
	dg_free_note(DG_DIFFERS_ARGUMENT, dg_event_peek(), 1, 0, pc, &came);
	dg_free_turn();
	e = dg_free_raised(me, d->signal);
	dg_free_count(me);
	if (e && dg_free_signal_logged(d, e)) {
		x->found = e;
		x->passed = 0;
		x->far = false;
		dg_free_use(me, e);
	} else {
		dg_free_unlogged(me);
	}
	dg_signal_upcoming();
}

/* One that came by itself (an instruction raised it, or the controller placed it)
 * is the log's if that has one of its number next. */
static bool dg_free_signal(struct dg_delivery *d, const struct dg_ucontext *uc)
{
	struct dg_free_thread *x = dg_free_of(dg_me);
	uint64_t pc = uc->context.registers[DG_REG_RIP];
	struct dg_event came = { .kind = DG_EV_SIGNAL, .object = (uint64_t)d->signal, .site = pc };
	const struct dg_event *e = dg_event_peek();

	if (!DG_CONTROL->free)
		return false;
	if (d->place == DG_SIGNAL_ASYNC && DG_CONTROL->raised == dg_me->index) {
		dg_free_raise_here(d, pc);
		return true;
	}
	if (x->delivers) {
		dg_free_signal_logged(d, x->delivers);
		return true;
	}
	if (!dg_free()) {
		if (dg_free_signal_fits(e, d, pc))
			return false;
		dg_free_begin();
		dg_free_note(DG_DIFFERS_ARGUMENT, e, 1, e && e->args > 1 ? dg_logged_args(e)[1] : 0, pc, &came);
	}
	if (d->place == DG_SIGNAL_EVENT && d->info)
		return true; /* the process sent it */
	dg_free_turn();
	e = dg_signal_next();
	if (!e || e->object != came.object)
		return true;
	e = dg_free_did(DG_EV_SIGNAL, came.object, 0);
	if (e && d->place != DG_SIGNAL_FAULT)
		dg_free_signal_logged(d, e);
	return true;
}

/* ---- the program's calls about signals ---- */

static void dg_free_procmask(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	uint64_t old = me->mask, mask;
	int64_t result = dg_mask_asked(me, f, c, &mask);

	if (!result) {
		me->mask = mask;
		dg_mask_set(dg_kernel_mask(mask));
	}
	if (!result && c->args[2] && !dg_give(c->args[2], &old, sizeof(old)))
		result = -EFAULT;
	f->rax = (uint64_t)result;
}

static void dg_free_action(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_action action, kernel, old;
	int64_t result = dg_action_asked(me, f, c, &action);
	uint64_t signal = c->args[0];

	if (!result) {
		old = dg_actions[signal];
		if (c->args[1]) {
			dg_actions[signal] = action;
			kernel = dg_kernel_action((int)signal, &action);
			dg_sys4(SYS_rt_sigaction, signal, &kernel, 0, 8);
		}
		if (c->args[2] && !dg_give(c->args[2], &old, sizeof(old)))
			result = -EFAULT;
	}
	f->rax = (uint64_t)result;
}

static void dg_free_altstack(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_stack old = { me->alt_low, (int32_t)me->alt_flags, 0, me->alt_size };
	int64_t result;

	if (!me->alt_size)
		old.flags |= SS_DISABLE;
	else if (dg_on_alternate(me, f->rsp))
		old.flags |= SS_ONSTACK;
	result = dg_altstack_set(me, f, c);
	if (!result && c->args[1] && !dg_give(c->args[1], &old, sizeof(old)))
		result = -EFAULT;
	f->rax = (uint64_t)result;
}
