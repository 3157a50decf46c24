/* Condition variables. A wait is one event, when the mutex is taken again. What
 * woke it need not be known: whoever signalled did so before, and the event
 * orders this thread after whoever had the mutex last. */
#include "engine/engine.h"
#include "engine/free.h"
#include "engine/sync.h"

/* The kernel looks whether the variable has changed, and may find that it is gone. */
static int dg_cond_sleep(const struct dg_cond_wait *w, uint32_t sequence)
{
	const uint32_t *word = &w->cond->sequence;
	long slept = dg_hunting() ? dg_hunt_sleep_until_woken(word, w->until) : dg_sleep(word, sequence, w->until);

	if (slept)
		__atomic_sub_fetch(dg_wait_count(&w->cond->sequence), 1, __ATOMIC_RELAXED);
	return slept == -ETIMEDOUT || slept == -EINTR || slept == -ERESTART ? (int)-slept : 0;
}

static void dg_cond_release(struct dg_cond_wait *w)
{
	struct dg_mutex *m = w->mutex;

	w->step = DG_COND_WAITS;
	if (w->nested) {
		m->count--;
		return;
	}
	m->owner = 0;
	if ((m->kind & DG_MUTEX_TYPE) == DG_MUTEX_RECURSIVE)
		m->count = 0;
	__atomic_store_n(&m->lock, 0, __ATOMIC_SEQ_CST);
	dg_wake_word(&m->lock, 1);
}

static void dg_cond_has_again(struct dg_cond_wait *w)
{
	w->step = DG_COND_HOLDS;
	if (w->nested)
		w->mutex->count++;
	else
		dg_mutex_own(w->mutex, dg_me->tid, dg_me->index);
}

/* True: a signal's handler is to run first, and the call is made again. */
static bool dg_cond_record(struct dg_cond_wait *w, uint64_t how)
{
	uint32_t sequence;
	int slept = 0;

	if (w->step == DG_COND_HOLDS) {
		sequence = dg_cond_sequence(w->cond);
		dg_sync_waits(true);
		__atomic_add_fetch(dg_wait_count(&w->cond->sequence), 1, __ATOMIC_SEQ_CST);
		dg_cond_release(w);
		slept = dg_cond_sleep(w, sequence);
		w->result = slept == ETIMEDOUT ? ETIMEDOUT : 0;
	}
	if (slept != EINTR && slept != ERESTART &&
	    (w->nested || !dg_acquire(dg_mutex_attempt, w->mutex, dg_me->tid, NULL))) {
		dg_cond_has_again(w);
		dg_sync_write(DG_EV_COND, w->cond, w->site, how, w->result, 0);
		return false;
	}
	w->step = DG_COND_INTERRUPTED;
	dg_sync_write(DG_EV_COND, w->cond, w->site, how, w->result, DG_EVENT_INTERRUPTED);
	return true;
}

static bool dg_cond_replay(struct dg_cond_wait *w, uint64_t how)
{
	const struct dg_event *e;

	if (w->step == DG_COND_HOLDS) {
		dg_me->cond_sequence = dg_cond_sequence(w->cond);
		dg_free_waits(dg_me->cond_sequence);
		dg_turn_released(w->mutex);
		dg_cond_release(w);
	} else {
		dg_me->cond_sequence = 0; /* which none has: the wait is over */
	}
	if (!w->nested)
		dg_mutex_await(DG_EV_COND, w->cond, w->mutex);
	e = dg_sync_read(DG_EV_COND, w->cond, w->site, how);
	w->result = (int32_t)e->result;
	if (e->flags & DG_EVENT_INTERRUPTED) {
		w->step = DG_COND_INTERRUPTED;
		return true;
	}
	dg_free_expect(w->step != DG_COND_WAITS || w->result || dg_free_signalled(w->cond->sequence), e);
	if (!w->nested)
		dg_mutex_acquired(w->mutex, e);
	dg_cond_has_again(w);
	return false;
}

/* Argument: struct dg_cond_wait. With a step other than DG_COND_HOLDS the wait
 * was interrupted, by a handler that has returned or that leaves for ever: then it
 * is over, as POSIX allows at any time, and only the mutex is wanted. */
static void dg_op_cond_wait(struct dg_frame *f)
{
	struct dg_cond_wait *w = (struct dg_cond_wait *)f->rsi;
	uint64_t how = w->until ? DG_SYNC_TIMED_WAIT : DG_SYNC_WAIT;

	if ((dg_sync_recording() ? dg_cond_record : dg_cond_replay)(w, how))
		dg_again(f);
	else
		f->rax = (uint64_t)(int64_t)w->result;
}
