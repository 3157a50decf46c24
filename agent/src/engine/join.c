/* pthread_join, pthread_detach, pthread_cancel: what of them the engine does. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/sync.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

/* NULL: unknown to the engine. As glibc, it believes that there is a control
 * block. */
static struct dg_rthread *dg_thread_of(uint64_t thread)
{
	struct dg_rthread *t = *dg_me_of(thread);
	uint64_t at = (uint64_t)t - DG_ENGINE_THREADS;

	if (at % DG_THREAD_SLOT || !at || at / DG_THREAD_SLOT > DG_CONTROL->threads || t->thread_pointer != thread)
		return NULL;
	return t->index == 1 || dg_fact(t)->begun || !(dg_fact(t)->flags & DG_CREATE_INTERNAL) ? t : NULL;
}

static int64_t dg_join_claim(struct dg_rthread *t)
{
	struct dg_rthread *me = dg_me;

	if (dg_fact(t)->flags & DG_CREATE_DETACHED || dg_fact(t)->joiner)
		return EINVAL;
	if (t == me || dg_fact(t)->joins == me->index)
		return EDEADLK;
	dg_fact(t)->joiner = me->index;
	dg_fact(me)->joins = t->index;
	return 0;
}

static void dg_join_unclaim(struct dg_rthread *t)
{
	dg_fact(dg_me)->joins = 0;
	dg_fact(t)->joiner = 0;
}

#define DG_JOIN_INTERRUPTED (-1)

/* how: enum dg_join, and a clock in the bits above. */
static int64_t dg_join_wait(struct dg_rthread *t, uint64_t how, const struct timespec *until)
{
	uint64_t clock = how >> 8 == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
	uint64_t args[6] = { (uint64_t)&dg_fact(t)->ended, FUTEX_WAIT_BITSET_PRIVATE | clock, 0, (uint64_t)until, 0,
			     FUTEX_BITSET_MATCH_ANY };
	struct dg_until limit = { .clock = CLOCK_REALTIME };
	bool done;
	long error;

	how &= 0xff;
	if (how == DG_JOIN_TIMED && (until->tv_nsec < 0 || until->tv_nsec >= 1000000000))
		return EINVAL;
	while (!(done = __atomic_load_n(&dg_fact(t)->ended, __ATOMIC_ACQUIRE)) && how != DG_JOIN_TRY) {
		if (until)
			limit.at = *until;
		error = dg_hunting() ? dg_hunt_sleep(&dg_fact(t)->ended, 0, until ? &limit : NULL) :
				       dg_blocking(SYS_futex, args, &dg_me->pending);
		if (error == -ETIMEDOUT)
			return ETIMEDOUT;
		if (dg_interrupted())
			return DG_JOIN_INTERRUPTED;
	}
	return done ? 0 : EBUSY;
}

static void dg_joined(struct dg_rthread *t)
{
	if (dg_live == 1)
		dg_many = 0;
	dg_thread_gone(t);
}

static int64_t dg_join_recorded(struct dg_rthread *t, uint64_t how, const struct timespec *until, uint64_t site)
{
	uint64_t arg = how & 0xff, arrived = dg_ticket();
	struct dg_event *e;
	int64_t result;

	dg_gate_take(&dg_threads_gate, true);
	result = dg_join_claim(t);
	if (!result) {
		dg_gate_open(&dg_threads_gate);
		result = dg_join_wait(t, how, until);
		dg_gate_take(&dg_threads_gate, true);
		if (result)
			dg_join_unclaim(t);
	}
	e = dg_event_begin(DG_EV_JOIN, t->index, site, 2, 0);
	if (e) {
		dg_event_args(e)[0] = arg;
		dg_event_args(e)[1] = arrived;
		e->result = result == DG_JOIN_INTERRUPTED ? 0 : result;
		e->flags = DG_EVENT_ARRIVED | (result == DG_JOIN_INTERRUPTED ? DG_EVENT_INTERRUPTED : 0);
		dg_event_commit(e);
	}
	if (!result)
		dg_joined(t);
	dg_gate_open(&dg_threads_gate);
	return result;
}

static int64_t dg_join_replayed(struct dg_rthread *t, uint64_t how, uint64_t site)
{
	const struct dg_event *logged = dg_event_await(DG_EV_JOIN, t->index);
	uint64_t arg = how & 0xff;

	dg_event_take(logged, DG_EV_JOIN, t->index, site, &arg, 1);
	if (logged->flags & DG_EVENT_INTERRUPTED)
		return DG_JOIN_INTERRUPTED;
	if (logged->result)
		return logged->result;
	if (!dg_fact(t)->ended)
		dg_diverge(DG_DIFFERS_STATE, logged, 0, DG_R_ENDED, t->state);
	dg_fact(t)->joiner = dg_me->index;
	dg_joined(t);
	return 0;
}

/* thread, how, until, site */
static void dg_op_join_begin(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	int64_t result;

	if (!t) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	result = dg_recording() ? dg_join_recorded(t, f->rdx, (const struct timespec *)f->rcx, f->r8) :
				  dg_join_replayed(t, f->rdx, f->r8);
	f->rax = (uint64_t)result;
	if (result == DG_JOIN_INTERRUPTED)
		dg_again(f);
}

/* Around glibc's own join of a thread that is gone; thread, whether it is over,
 * site. Not one piece with the wait, in which the program may cancel this thread. */
static void dg_op_join_end(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);

	if (!f->rdx) {
		dg_threads_enter(DG_EV_ORDER, f->rsi);
		dg_event_plain(DG_EV_ORDER, f->rsi, f->rcx, 0, NULL, 0);
		return;
	}
	dg_fact(dg_me)->joins = 0;
	if (t)
		dg_slots_free(&dg_fact(t)->stack);
	dg_gate_open(&dg_threads_gate);
}

static void dg_op_detach(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	const struct dg_event *logged;
	struct dg_fact *fact;
	int64_t result;

	if (!t || t->index == 1 || dg_fact(t)->flags & DG_CREATE_OWN_STACK) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	fact = dg_fact(t);
	dg_threads_enter(DG_EV_DETACH, t->index);
	result = fact->flags & DG_CREATE_DETACHED ? EINVAL : 0;
	logged = dg_event_plain(DG_EV_DETACH, t->index, f->rdx, result, NULL, 0);
	if (!dg_recording() && logged->result != result)
		dg_diverge(DG_DIFFERS_STATE, logged, 0, (uint64_t)logged->result, (uint64_t)result);
	fact->flags |= DG_CREATE_DETACHED;
	if (!result && fact->ended && dg_reapable(fact))
		dg_reap_add(t->index);
	dg_gate_open(&dg_threads_gate);
	f->rax = (uint64_t)result;
}

/* The thread finds out by a signal, and does the rest: so it is at one of its
 * instructions that it is cancelled, and not at a time that no event tells. */
static void dg_op_cancel(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	const struct dg_event *logged;
	int64_t result;

	if (!t) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	if (dg_recording()) {
		/* An ended thread's id may be another's. */
		dg_gate_take(&dg_threads_gate, true);
		result = dg_fact(t)->ended ? ESRCH : 0;
		dg_event_plain(DG_EV_CANCEL, t->index, f->rdx, result, NULL, 0);
		if (!result)
			dg_sys3(SYS_tgkill, DG_CONTROL->pid, t->tid, f->rcx);
		if (!result && dg_hunting() && !dg_by_turns)
			dg_hunt_delivered(t->tid, f->rcx, false);
		dg_gate_open(&dg_threads_gate);
	} else {
		logged = dg_event_await(DG_EV_CANCEL, t->index);
		dg_event_take(logged, DG_EV_CANCEL, t->index, f->rdx, NULL, 0);
		result = logged->result;
	}
	f->rax = (uint64_t)result;
}

bool dg_thread_ask(uint64_t thread, struct dg_thread_facts *facts)
{
	const struct dg_rthread *t = dg_thread_of(thread);
	const struct dg_stack_slots *s;

	if (!t || !dg_fact(t)->stack.count)
		return false;
	s = &dg_fact(t)->stack;
	facts->guard = dg_slot_maps[s->first].low - dg_slot_maps[s->first].base;
	facts->detached = dg_fact(t)->flags & DG_CREATE_DETACHED;
	return true;
}
