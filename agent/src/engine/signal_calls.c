/* The program's calls that say what becomes of signals. One that changes what a
 * thread gets is made only if no signal waits for the thread: that one came
 * before the call, and its handler runs before it. */
#include "engine/engine.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>

static void dg_call_record(struct dg_frame *f, const struct dg_call *c);
static void dg_call_replay(struct dg_frame *f, const struct dg_call *c);

struct dg_stack {
	uint64_t low;
	int32_t flags;
	uint32_t reserved;
	uint64_t size;
};

#define DG_MINSIGSTKSZ 2048u

/* A spin lock: kernel's action and ours change together. Its holder is in the
 * engine, so no signal of its own makes it wait for itself. */
static uint32_t dg_action_lock;

static bool dg_can_read(const struct dg_rthread *me, const struct dg_frame *f, uint64_t at, uint64_t bytes)
{
	if (f->rsp >= dg_stack_low(me) && at >= f->rsp && at < me->stack_high && bytes <= me->stack_high - at)
		return true;
	return dg_readable(at, bytes);
}

/* Logs the call with what it gave the program. */
static void dg_signal_done(const struct dg_call *c, int64_t result, uint8_t flags, uint64_t out, const void *bytes,
			   uint32_t length)
{
	struct dg_event *e = dg_event_begin(DG_EV_SYSCALL, (uint64_t)c->nr, c->site, c->row->args, sizeof(struct dg_payload) + length);

	if (!e)
		return;
	dg_copy(dg_event_args(e), c->args, c->row->args * sizeof(c->args[0]));
	e->result = result;
	e->flags = flags;
	if (out && length)
		dg_event_payload(e, DG_PAYLOAD_OUT, out, bytes, length);
	dg_event_commit(e);
}

/* Recording: the call was not made. */
static void dg_signal_not_now(struct dg_frame *f, const struct dg_call *c)
{
	dg_signal_done(c, 0, DG_EVENT_INTERRUPTED, 0, NULL, 0);
	dg_again(f);
}

/* False: the call was not made then, and is made again. */
static bool dg_signal_logged(struct dg_frame *f, const struct dg_call *c, int64_t *result)
{
	const struct dg_event *e = dg_event_await(DG_EV_SYSCALL, (uint64_t)c->nr);

	dg_event_take(e, DG_EV_SYSCALL, (uint64_t)c->nr, c->site, c->args, c->row->args);
	if (e->flags & DG_EVENT_INTERRUPTED) {
		dg_again(f);
		return false;
	}
	*result = e->result;
	f->rax = (uint64_t)e->result;
	dg_payload_write(e);
	return true;
}

static long dg_unless_pending(struct dg_rthread *me, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const uint64_t args[6] = { a, b, c, d, 0, 0 };

	return dg_blocking_call(number, args, &me->pending);
}

/* Where the program gets something: probed by a write that is repeated. */
static bool dg_give(uint64_t to, const void *bytes, uint64_t length)
{
	if (!dg_can_write(to, to + length))
		return false;
	dg_copy((void *)to, bytes, length);
	return true;
}

/* ---- rt_sigprocmask ---- */

static int64_t dg_mask_asked(const struct dg_rthread *me, const struct dg_frame *f, const struct dg_call *c, uint64_t *mask)
{
	uint64_t how = c->args[0], set;

	*mask = me->mask;
	if (c->args[3] != 8)
		return -EINVAL;
	if (!c->args[1])
		return 0;
	if (!dg_can_read(me, f, c->args[1], 8))
		return -EFAULT;
	set = *(const uint64_t *)c->args[1] & ~DG_NEVER_BLOCKED;
	if (how == SIG_BLOCK)
		*mask |= set;
	else if (how == SIG_UNBLOCK)
		*mask &= ~set;
	else if (how == SIG_SETMASK)
		*mask = set;
	else
		return -EINVAL;
	return 0;
}

static void dg_call_procmask(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	uint64_t old = me->mask, mask, kernel;
	int64_t result;

	if (dg_mode == DG_MODE_REPLAY) {
		if (!dg_signal_logged(f, c, &result))
			return;
		if ((result == 0 || result == -EFAULT) && !dg_mask_asked(me, f, c, &mask)) {
			me->mask = mask;
			dg_mask_set(dg_kernel_mask(mask));
		}
		return;
	}
	result = dg_mask_asked(me, f, c, &mask);
	kernel = dg_kernel_mask(mask);
	if (!result && mask != old &&
	    dg_unless_pending(me, SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&kernel, 0, 8) == DG_NOT_MADE) {
		dg_signal_not_now(f, c);
		return;
	}
	if (!result)
		me->mask = mask;
	if (!result && c->args[2] && !dg_give(c->args[2], &old, sizeof(old)))
		result = -EFAULT;
	f->rax = (uint64_t)result;
	dg_signal_done(c, result, 0, result ? 0 : c->args[2], &old, sizeof(old));
}

/* ---- rt_sigaction ---- */

static int64_t dg_action_asked(const struct dg_rthread *me, const struct dg_frame *f, const struct dg_call *c, struct dg_action *action)
{
	uint64_t signal = c->args[0];

	if (c->args[3] != 8 || !signal || signal > DG_SIGNALS)
		return -EINVAL;
	if (!c->args[1])
		return 0;
	if (signal == SIGKILL || signal == SIGSTOP)
		return -EINVAL;
	if (!dg_can_read(me, f, c->args[1], sizeof(*action)))
		return -EFAULT;
	dg_copy(action, (const void *)c->args[1], sizeof(*action));
	action->mask &= ~DG_NEVER_BLOCKED;
	return 0;
}

static void dg_call_action_again(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_action action, kernel;
	int64_t result;

	if (!dg_signal_logged(f, c, &result) || (result && result != -EFAULT))
		return;
	if (dg_action_asked(me, f, c, &action) || !c->args[1])
		return;
	dg_actions[c->args[0]] = action;
	kernel = dg_kernel_action((int)c->args[0], &action);
	dg_sys4(SYS_rt_sigaction, c->args[0], &kernel, 0, 8);
}

/* DG_NOT_MADE, or the kernel's answer. */
static int64_t dg_action_change(struct dg_rthread *me, int signal, const struct dg_action *action, struct dg_action *old)
{
	struct dg_action kernel;
	int64_t result = 0;

	while (__atomic_exchange_n(&dg_action_lock, 1, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	*old = dg_actions[signal];
	if (action) {
		kernel = dg_kernel_action(signal, action);
		result = dg_unless_pending(me, SYS_rt_sigaction, (uint64_t)signal, (uint64_t)&kernel, 0, 8);
		if (!result)
			dg_actions[signal] = *action;
	}
	return result;
}

static void dg_call_action(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_action action, old = { 0 };
	int64_t result;

	if (dg_mode == DG_MODE_REPLAY) {
		dg_call_action_again(me, f, c);
		return;
	}
	result = dg_action_asked(me, f, c, &action);
	if (result) {
		f->rax = (uint64_t)result;
		dg_signal_done(c, result, 0, 0, NULL, 0);
		return;
	}
	result = dg_action_change(me, (int)c->args[0], c->args[1] ? &action : NULL, &old);
	if (result == DG_NOT_MADE) {
		dg_signal_not_now(f, c);
	} else {
		if (!result && c->args[2] && !dg_give(c->args[2], &old, sizeof(old)))
			result = -EFAULT;
		f->rax = (uint64_t)result;
		dg_signal_done(c, result, 0, result ? 0 : c->args[2], &old, sizeof(old));
	}
	__atomic_store_n(&dg_action_lock, 0, __ATOMIC_RELEASE);
}

/* ---- sigaltstack: the kernel is not asked, it has the engine's ---- */

/* do_sigaltstack */
static int64_t dg_altstack_set(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_stack s;
	int32_t mode;

	if (!c->args[0])
		return 0;
	if (!dg_can_read(me, f, c->args[0], sizeof(s)))
		return -EFAULT;
	dg_copy(&s, (const void *)c->args[0], sizeof(s));
	if (dg_on_alternate(me, f->rsp))
		return -EPERM;
	mode = s.flags & ~(int32_t)SS_AUTODISARM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
		return -EINVAL;
	if (mode == SS_DISABLE)
		s.low = s.size = 0;
	else if (s.size < DG_MINSIGSTKSZ)
		return -ENOMEM;
	me->alt_low = s.low;
	me->alt_size = s.size;
	me->alt_flags = (uint32_t)s.flags & SS_AUTODISARM;
	return 0;
}

static void dg_call_altstack(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	struct dg_stack old = { me->alt_low, (int32_t)me->alt_flags, 0, me->alt_size };
	int64_t result, logged;

	if (!me->alt_size)
		old.flags |= SS_DISABLE;
	else if (dg_on_alternate(me, f->rsp))
		old.flags |= SS_ONSTACK;
	if (dg_mode == DG_MODE_REPLAY) {
		if (dg_signal_logged(f, c, &logged))
			dg_altstack_set(me, f, c);
		return;
	}
	result = dg_altstack_set(me, f, c);
	if (!result && c->args[1] && !dg_give(c->args[1], &old, sizeof(old)))
		result = -EFAULT;
	f->rax = (uint64_t)result;
	dg_signal_done(c, result, 0, result ? 0 : c->args[1], &old, sizeof(old));
}

/* ---- rt_sigsuspend, pause ---- */

static void dg_call_suspend(struct dg_rthread *me, struct dg_frame *f, const struct dg_call *c)
{
	uint64_t mask;
	int64_t result;

	if (dg_mode == DG_MODE_REPLAY) {
		dg_signal_logged(f, c, &result);
		return;
	}
	if ((uint64_t)c->nr == SYS_pause) {
		result = dg_unless_pending(me, SYS_pause, 0, 0, 0, 0);
	} else if (c->args[1] != 8) {
		result = -EINVAL;
	} else if (!dg_can_read(me, f, c->args[0], 8)) {
		result = -EFAULT;
	} else {
		mask = dg_kernel_mask(*(const uint64_t *)c->args[0]);
		result = dg_unless_pending(me, SYS_rt_sigsuspend, (uint64_t)&mask, 8, 0, 0);
	}
	if (result == DG_NOT_MADE) {
		dg_signal_not_now(f, c);
		return;
	}
	f->rax = (uint64_t)result;
	dg_signal_done(c, result, 0, 0, NULL, 0);
}

static void dg_signal_call(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_rthread *me = dg_me;

	switch (c->nr) {
	case SYS_rt_sigprocmask:
		dg_call_procmask(me, f, c);
		break;
	case SYS_rt_sigaction:
		dg_call_action(me, f, c);
		break;
	case SYS_sigaltstack:
		dg_call_altstack(me, f, c);
		break;
	case SYS_rt_sigsuspend:
	case SYS_pause:
		dg_call_suspend(me, f, c);
		break;
	default:
		if (dg_mode == DG_MODE_RECORD)
			dg_call_record(f, c);
		else
			dg_call_replay(f, c);
	}
}

/* ---- threads, fork ---- */

static void dg_signal_stack(const struct dg_rthread *me)
{
	struct dg_stack s = { (uint64_t)me + DG_SIGNAL_STACK_AT, 0, 0, DG_SIGNAL_STACK };

	dg_sys2(SYS_sigaltstack, &s, 0);
}

static void dg_signal_thread_start(struct dg_rthread *me)
{
	dg_signal_stack(me);
	dg_mask_set(dg_kernel_mask(me->mask));
}

/* A signal kept for a thread that ends is another one's, unless it was sent to
 * that thread alone. */
static void dg_signal_thread_end(struct dg_rthread *me)
{
	dg_mask_set(DG_ALL);
	for (uint32_t i = 0; dg_mode == DG_MODE_RECORD && i < me->pending; i++)
		if (dg_info_word(me->infos[i], 8) != SI_TKILL)
			dg_sys3(SYS_rt_sigqueueinfo, dg_sys0(SYS_getpid), dg_info_word(me->infos[i], 0), me->infos[i]);
	me->pending = 0;
}

static void dg_signal_forked(struct dg_rthread *me)
{
	dg_action_lock = 0;
	if (!me->pending)
		return;
	me->pending = 0;
	dg_mask_set(dg_kernel_mask(me->mask));
}

static void dg_signal_start(struct dg_rthread *me)
{
	dg_xstate_learn();
	/* Ignored ones may be inherited. */
	for (int signal = 1; signal <= DG_SIGNALS; signal++) {
		struct dg_action kernel;

		if (dg_sys4(SYS_rt_sigaction, signal, 0, &dg_actions[signal], 8))
			continue;
		kernel = dg_kernel_action(signal, &dg_actions[signal]);
		if (kernel.handler != dg_actions[signal].handler)
			dg_sys4(SYS_rt_sigaction, signal, &kernel, 0, 8);
	}
	dg_sys4(SYS_rt_sigprocmask, SIG_BLOCK, 0, &me->mask, 8);
	dg_signal_thread_start(me);
}
