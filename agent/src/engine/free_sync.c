/* Synchronisation of a free process: what a variable says counts, and the log has
 * no more than the place in the schedule. */
#include "engine/free.h"
#include "engine/sync.h"
#include "engine/thread.h"

#include <errno.h>

/* The result, as dg_acquire's. */
static int dg_free_acquire(dg_attempt *attempt, void *variable, bool waits, const struct dg_until *until)
{
	const uint32_t *word;
	uint32_t value;
	int result;

	dg_free_turn();
	while ((result = attempt(variable, dg_me->tid, &word, &value)) == DG_MUST_WAIT) {
		if (!waits)
			return DG_MUST_WAIT;
		if (until && !dg_until_valid(until))
			return EINVAL;
		switch (dg_free_wait(DG_WAIT_CHANGE, word, value, until)) {
		case DG_WAITED:
			break;
		case DG_WAITED_TOO_LONG:
			return ETIMEDOUT;
		case DG_WAIT_SIGNALLED:
			return EINTR;
		}
	}
	return result;
}

/* Before the event is taken, a signal's handler runs; the call is made again. */
static bool dg_free_interrupted(struct dg_frame *f, int result)
{
	if (result != EINTR)
		return false;
	dg_me->waits_for = 0;
	dg_me->pending = 1;
	dg_again(f);
	return true;
}

/* Of a lock: who tries in vain may do so for ever. */
static void dg_free_done(struct dg_frame *f, enum dg_kind kind, int result, int busy)
{
	uint64_t object = f->rsi, site = f->rdx;

	if (result == DG_MUST_WAIT) {
		result = busy;
		dg_free_vain();
	}
	f->rax = (uint64_t)(int64_t)result;
	dg_free_did(kind, object, site);
}

static void dg_free_mutex(struct dg_frame *f)
{
	struct dg_mutex *m = (struct dg_mutex *)f->rsi;
	int result;
	bool again;

	dg_free_at(DG_EV_MUTEX, f->rsi);
	result = dg_free_acquire(dg_mutex_attempt, m, f->rcx != DG_SYNC_TRY, (const struct dg_until *)f->r8);
	if (dg_free_interrupted(f, result))
		return;
	again = f->rcx == DG_SYNC_LOCK && m->last == dg_me->index;
	if (!result)
		dg_mutex_own(m, dg_me->tid, dg_me->index);
	if (!again) {
		dg_free_done(f, DG_EV_MUTEX, result, EBUSY);
		return;
	}
	/* No event in any log. */
	f->rax = (uint64_t)(int64_t)result;
	dg_free_count(dg_me);
	dg_free_alone(dg_me, 1);
}

static int dg_spin_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	(void)tid;
	*word = variable;
	*value = **word;
	return dg_spin_try(variable, dg_me->index) ? DG_MUST_WAIT : DG_TAKEN;
}

static void dg_free_spin(struct dg_frame *f)
{
	int result;

	dg_free_at(DG_EV_SPIN, f->rsi);
	result = dg_free_acquire(dg_spin_attempt, (void *)f->rsi, f->rcx != DG_SYNC_TRY, NULL);
	if (!dg_free_interrupted(f, result))
		dg_free_done(f, DG_EV_SPIN, result, EBUSY);
}

static void dg_free_rwlock(struct dg_frame *f)
{
	dg_attempt *attempt = dg_rw_reads(f->rcx) ? dg_rw_read_attempt : dg_rw_write_attempt;
	int result;

	dg_free_at(DG_EV_RWLOCK, f->rsi);
	result = dg_free_acquire(attempt, (void *)f->rsi, !dg_rw_tries(f->rcx), (const struct dg_until *)f->r8);
	if (result == EDEADLK && dg_rw_tries(f->rcx))
		result = DG_MUST_WAIT;
	if (!dg_free_interrupted(f, result))
		dg_free_done(f, DG_EV_RWLOCK, result, EBUSY);
}

static void dg_free_sem(struct dg_frame *f)
{
	int result = 0;

	dg_free_at(DG_EV_SEM, f->rsi);
	if (f->rcx == DG_SYNC_GET) {
		dg_free_turn();
		result = (int)((const struct dg_sem *)f->rsi)->value;
	} else {
		result = dg_free_acquire(dg_sem_attempt, (void *)f->rsi, f->rcx != DG_SYNC_TRY, (const struct dg_until *)f->r8);
	}
	if (result == EINTR)
		dg_me->pending = 1;
	dg_free_done(f, DG_EV_SEM, result, EAGAIN);
}

/* ---- condition variables ---- */

/* A wait that began before the process was free: whether it was signalled since. */
static void dg_free_waits(uint32_t sequence)
{
	if (DG_CONTROL->free)
		dg_free_of(dg_me)->sequence = sequence;
}

static bool dg_free_signalled(uint32_t sequence)
{
	return !DG_CONTROL->free || dg_free_of(dg_me)->sequence != sequence;
}

static enum dg_waited dg_free_cond_sleep(struct dg_cond_wait *w)
{
	uint32_t *count = dg_wait_count(&w->cond->sequence);
	enum dg_waited how;

	++*count; /* so that signals come to dg_free_released */
	how = dg_free_wait(DG_WAIT_WAKE, &w->cond->sequence, 0, w->until);
	--*count;
	return how;
}

static void dg_free_cond(struct dg_frame *f)
{
	struct dg_cond_wait *w = (struct dg_cond_wait *)f->rsi;
	enum dg_waited how = DG_WAITED;

	dg_free_at(DG_EV_COND, (uint64_t)w->cond);
	if (w->step == DG_COND_HOLDS) {
		dg_cond_sequence(w->cond);
		dg_cond_release(w);
		how = dg_free_cond_sleep(w);
		w->result = how == DG_WAITED_TOO_LONG ? ETIMEDOUT : 0;
	} else if (w->step == DG_COND_WAITS && !dg_free_signalled(w->cond->sequence)) {
		how = dg_free_cond_sleep(w);
		w->result = how == DG_WAITED_TOO_LONG ? ETIMEDOUT : 0;
	}
	if (how == DG_WAIT_SIGNALLED) {
		w->step = DG_COND_INTERRUPTED;
		dg_free_interrupted(f, EINTR);
		return;
	}
	if (!w->nested)
		while (dg_free_acquire(dg_mutex_attempt, w->mutex, true, NULL) == EINTR)
			dg_free_of(dg_me)->sents = 0;
	dg_cond_has_again(w);
	f->rax = (uint64_t)(int64_t)w->result;
	dg_free_did(DG_EV_COND, (uint64_t)w->cond, w->site);
}

/* As dg_op_released. How many are to be woken is in r9 still: wrap/mutex.c. */
static void dg_free_released(struct dg_frame *f)
{
	dg_free_wake(f->rsi, (uint32_t)f->r9);
	f->rdi = f->rsi;
	f->rip = (uint64_t)dg_wake_took;
	f->rsp -= sizeof(uint64_t);
}

/* ---- barriers, initialisation ---- */

static void dg_free_barrier(struct dg_frame *f)
{
	struct dg_barrier_wait *w = (struct dg_barrier_wait *)f->rsi;
	struct dg_barrier *b = w->barrier;

	dg_free_at(DG_EV_BARRIER, (uint64_t)b);
	dg_free_turn();
	if (!w->arrived) {
		b->in++;
		w->round = b->round = b->round ? b->round : 1;
		w->arrived = 1;
	}
	f->rax = 0;
	if (b->round == w->round && b->in >= b->count) {
		b->in -= b->count;
		b->round = dg_barrier_next(b->round);
		f->rax = (uint64_t)(int64_t)DG_BARRIER_LAST;
	}
	while (b->round == w->round)
		if (dg_free_interrupted(f, dg_free_wait(DG_WAIT_CHANGE, &b->round, w->round, false) == DG_WAIT_SIGNALLED ? EINTR : 0))
			return;
	dg_free_did(DG_EV_BARRIER, (uint64_t)b, w->site);
}

static void dg_free_initialise(struct dg_frame *f, const struct dg_once *o, enum dg_kind kind)
{
	dg_free_at(kind, (uint64_t)o->word);
	dg_free_turn();
	while (*o->word == o->runs)
		if (dg_free_interrupted(f, dg_free_wait(DG_WAIT_CHANGE, o->word, o->runs, false) == DG_WAIT_SIGNALLED ? EINTR : 0))
			return;
	f->rax = !dg_once_done(o);
	if (!f->rax) {
		dg_me->waits_for = 0;
		return; /* no event */
	}
	*o->word = o->runs;
	dg_free_did(kind, (uint64_t)o->word, f->rdx);
}

static void dg_free_once(struct dg_frame *f)
{
	struct dg_once o = { .word = (uint32_t *)f->rsi, .runs = DG_ONCE_RUNS | DG_SYNC_TABLE->fork_generation };

	dg_free_initialise(f, &o, DG_EV_ONCE);
}

static void dg_free_guard(struct dg_frame *f)
{
	struct dg_once o = { .word = (uint32_t *)f->rsi, .runs = DG_GUARD_RUNS, .guard = true };

	dg_free_initialise(f, &o, DG_EV_GUARD);
}

/* ---- variables of glibc's ---- */

/* glibc's robust ones and their kin have the owner's tid in the word, or 1. Which
 * bits say that a thread waits does not matter. Whether the thread tries or waits
 * is not told here, but what it did in vain it may do in vain again. A condition of
 * glibc's is not known to be signalled: such a wait ends for no reason, as it may. */
static void dg_free_real(struct dg_frame *f)
{
	const uint32_t *word = (const uint32_t *)f->rdx;
	enum dg_kind kind = (enum dg_kind)f->rsi;
	struct dg_free_want want = { .kind = kind, .object = f->rdx, .site = f->rcx };
	const struct dg_event *e;

	dg_free_at(kind, f->rdx);
	dg_free_turn();
	e = dg_free_look(dg_me, &want);
	if (e && e->result)
		dg_free_vain();
	else if (kind == DG_EV_MUTEX && ((const struct dg_mutex *)word)->owner != dg_me->tid)
		while (*word & 0x3fffffff)
			dg_free_wait(DG_WAIT_CHANGE, word, *word, false);
	else if (kind == DG_EV_SEM || kind == DG_EV_SPIN)
		while ((int32_t)*word <= 0)
			dg_free_wait(DG_WAIT_CHANGE, word, *word, false);
	else
		dg_free_yield();
	e = dg_free_did(kind, f->rdx, f->rcx);
	if (e)
		dg_payload_write(e);
	f->rax = e ? (uint64_t)e->result : 0;
}

static void dg_free_heap(struct dg_frame *f)
{
	uint32_t *word = (uint32_t *)f->rsi, tid = (uint32_t)f->rdx;
	bool wait = f->r8;

	dg_thread_start();
	f->rax = false;
	if (dg_heap_hopeless(word, tid))
		return;
	dg_free_at(DG_EV_HEAP, f->rcx);
	dg_free_turn();
	while (*word && wait)
		dg_free_wait(DG_WAIT_CHANGE, word, *word, false);
	if (!*word) {
		*word = tid;
		f->rax = true;
	}
	dg_free_did(DG_EV_HEAP, f->rcx, 0);
}

static void dg_free_look_again(struct dg_frame *f)
{
	dg_free_at(DG_EV_ORDER, f->rsi);
	dg_free_yield();
	dg_free_count(dg_me);
}

static void dg_free_gate(const struct dg_gate *g)
{
	while (g->owner && g->owner != dg_me->index)
		dg_free_wait(DG_WAIT_CHANGE, &g->owner, g->owner, false);
}

/* Its holder may wait for this thread: then libc's own lock has to do. */
static void dg_free_order(struct dg_frame *f)
{
	struct dg_gate *gate = &dg_families[f->rdx % DG_FAMILIES];
	bool taken = f->rdx;

	dg_free_at(DG_EV_ORDER, f->rsi);
	dg_free_turn();
	while (taken && gate->owner && gate->owner != dg_me->index)
		taken = dg_free_wait(DG_WAIT_CHANGE, &gate->owner, gate->owner, true) != DG_WAITED_TOO_LONG;
	if (taken) {
		gate->owner = dg_me->index;
		gate->depth++;
	}
	if (taken && f->rcx == DG_ORDER_GATE) {
		if (dg_fact(dg_me)->gates >> f->rdx & 1)
			dg_gate_open(gate);
		dg_fact(dg_me)->gates |= 1u << f->rdx;
	}
	f->rax = taken;
	dg_free_did(DG_EV_ORDER, f->rsi, f->r8);
}

/* ---- threads ---- */

/* A creation that the log has makes the thread that the log has. Another makes
 * one that it knows nothing of. */
static uint32_t dg_free_index(void)
{
	const struct dg_free_thread *x = dg_free_of(dg_me);
	uint32_t logged = DG_IMAGE->threads ? DG_IMAGE->threads - 1 : 0, last = DG_CONTROL->threads;
	uint64_t index = x->found && x->found->kind == DG_EV_CREATE && !x->found->result ? x->found->object : 0;

	if (!index || index >= DG_RTHREADS || (index <= last && dg_rthread_number((uint32_t)index)->state != DG_R_NONE))
		index = (last > logged ? last : logged) + 1;
	/* Those that are not made yet have a slot and nothing else. */
	for (; last + 1 < index; last++)
		if (dg_rthread_new(last + 1))
			dg_rthread_number(last + 1)->state = DG_R_NONE;
	if (last > DG_CONTROL->threads)
		DG_CONTROL->threads = last;
	return (uint32_t)index;
}

static void dg_free_join(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	uint64_t how = f->rdx & 0xff;
	enum dg_waited waited = DG_WAITED;
	int64_t result = 0;

	if (!t) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	dg_free_at(DG_EV_JOIN, t->index);
	dg_free_turn();
	if (dg_fact(t)->flags & DG_CREATE_DETACHED || dg_fact(t)->joiner)
		result = EINVAL;
	else if (t == dg_me)
		result = EDEADLK;
	else if (how == DG_JOIN_TRY && !dg_fact(t)->ended)
		result = EBUSY;
	while (!result && !dg_fact(t)->ended && waited == DG_WAITED)
		waited = dg_free_wait(DG_WAIT_CHANGE, &dg_fact(t)->ended, 0, how == DG_JOIN_TIMED);
	if (dg_free_interrupted(f, waited == DG_WAIT_SIGNALLED ? EINTR : 0))
		return;
	if (waited == DG_WAITED_TOO_LONG)
		result = ETIMEDOUT;
	dg_free_did(DG_EV_JOIN, t->index, f->r8);
	if (!result) {
		dg_fact(t)->joiner = dg_me->index;
		dg_joined(t);
	}
	f->rax = (uint64_t)result;
}

static void dg_free_detach(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	struct dg_fact *fact = t ? dg_fact(t) : NULL;

	if (!t || t->index == 1 || fact->flags & DG_CREATE_OWN_STACK) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	dg_free_at(DG_EV_DETACH, t->index);
	dg_free_turn();
	dg_free_gate(&dg_threads_gate);
	f->rax = fact->flags & DG_CREATE_DETACHED ? EINVAL : 0;
	fact->flags |= DG_CREATE_DETACHED;
	if (!f->rax && fact->ended && dg_reapable(fact))
		dg_reap_add(t->index);
	dg_free_did(DG_EV_DETACH, t->index, f->rdx);
}

static void dg_free_send(struct dg_rthread *t, uint32_t signal);

static void dg_free_cancel(struct dg_frame *f)
{
	struct dg_rthread *t = dg_thread_of(f->rsi);
	const struct dg_event *e;

	if (!t) {
		f->rax = (uint64_t)DG_NOT_OURS;
		return;
	}
	dg_free_at(DG_EV_CANCEL, t->index);
	dg_free_turn();
	f->rax = dg_fact(t)->ended ? ESRCH : 0;
	e = dg_free_did(DG_EV_CANCEL, t->index, f->rdx);
	/* If it is in the log, so is the signal in that thread's. */
	if (!e && !f->rax)
		dg_free_send(t, (uint32_t)f->rcx);
}

static dg_operation *const dg_free_table[DG_OPS] = {
	[DG_OP_MUTEX_LOCK] = dg_free_mutex,
	[DG_OP_RWLOCK] = dg_free_rwlock,
	[DG_OP_SPIN] = dg_free_spin,
	[DG_OP_COND_WAIT] = dg_free_cond,
	[DG_OP_SEM] = dg_free_sem,
	[DG_OP_BARRIER] = dg_free_barrier,
	[DG_OP_ONCE] = dg_free_once,
	[DG_OP_GUARD] = dg_free_guard,
	[DG_OP_REAL] = dg_free_real,
	[DG_OP_ORDER_BEGIN] = dg_free_order,
	[DG_OP_ORDER_WAIT] = dg_free_look_again,
	[DG_OP_YIELD] = dg_free_look_again,
	[DG_OP_HEAP] = dg_free_heap,
	[DG_OP_JOIN_BEGIN] = dg_free_join,
	[DG_OP_DETACH] = dg_free_detach,
	[DG_OP_CANCEL] = dg_free_cancel,
	[DG_OP_RELEASED] = dg_free_released,
};

static dg_operation *dg_free_operation(uint64_t op)
{
	return dg_free() && op < DG_OPS ? dg_free_table[op] : NULL;
}
