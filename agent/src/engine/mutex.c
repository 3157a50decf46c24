/* Mutexes and spin locks. The fast path of a mutex is in wrap/mutex.c. */
#include "engine/engine.h"
#include "engine/free.h"
#include "engine/sync.h"

static bool dg_lock_way_waits(uint64_t how)
{
	return how != DG_SYNC_TRY;
}

static int dg_mutex_acquire(struct dg_mutex *m, uint64_t how, const struct dg_until *until)
{
	if (!dg_lock_way_waits(how))
		return dg_mutex_try(m);
	dg_sync_waits(__atomic_load_n(&m->lock, __ATOMIC_RELAXED));
	return dg_acquire(dg_mutex_attempt, m, dg_me->tid, until);
}

/* A replay's: until whoever had it last has no more to do with it. */
static void dg_mutex_await(enum dg_kind kind, const void *object, const struct dg_mutex *m)
{
	if (dg_sync_await(kind, object))
		while ((m->lock || dg_turn_owes(m->last)) && dg_turn_catch_up(m->last))
			;
}

/* No other thread runs, so it is free or the log is of another program. */
static void dg_mutex_acquired(struct dg_mutex *m, const struct dg_event *e)
{
	dg_sync_expect(!m->lock, e, 0, m->owner);
	m->lock = 1;
}

/* Arguments: the mutex, the site, enum dg_sync, struct dg_until or NULL. */
static void dg_op_mutex_lock(struct dg_frame *f)
{
	struct dg_mutex *m = (struct dg_mutex *)f->rsi;
	const struct dg_event *e;
	int result;

	if (dg_sync_recording()) {
		result = dg_mutex_acquire(m, f->rcx, (const struct dg_until *)f->r8);
		if (!result)
			dg_mutex_own(m, dg_me->tid, dg_me->index);
		dg_sync_wrote(f, DG_EV_MUTEX, m, f->rdx, f->rcx, result);
		return;
	}
	dg_mutex_await(DG_EV_MUTEX, m, m);
	e = dg_sync_did(f, DG_EV_MUTEX, m, f->rdx, f->rcx);
	dg_free_expect(!e || f->rcx != DG_SYNC_TRY || !e->result || m->lock, e);
	if (!e || e->result)
		return;
	dg_mutex_acquired(m, e);
	dg_mutex_own(m, dg_me->tid, dg_me->index);
	dg_turn_holds(m);
}

/* As spinning threads are not to be kept off the processor for long by a holder
 * that is off it, on machines with fewer of them than threads. */
#define DG_SPIN_YIELD 1000u

/* Arguments: the lock, the site, enum dg_sync. */
static void dg_op_spin(struct dg_frame *f)
{
	uint32_t *word = (uint32_t *)f->rsi;
	const struct dg_event *e;
	int result;

	if (dg_sync_recording()) {
		dg_sync_waits(dg_lock_way_waits(f->rcx) && __atomic_load_n(word, __ATOMIC_RELAXED) & DG_SPIN_TAKEN);
		for (uint32_t i = 1;; i++) {
			result = dg_spin_try(word, dg_me->index);
			if (!result || !dg_lock_way_waits(f->rcx))
				break;
			if (dg_interrupted()) {
				result = EINTR;
				break;
			}
			if (dg_hunting())
				dg_hunt_sleep(word, *word, NULL);
			else if (i % DG_SPIN_YIELD)
				__builtin_ia32_pause();
			else
				dg_sys0(SYS_sched_yield);
		}
		dg_sync_wrote(f, DG_EV_SPIN, word, f->rdx, f->rcx, result);
		return;
	}
	if (dg_sync_await(DG_EV_SPIN, word))
		while ((*word & DG_SPIN_TAKEN || dg_turn_owes(dg_spin_last(*word))) &&
		       dg_turn_catch_up(dg_spin_last(*word)))
			;
	e = dg_sync_did(f, DG_EV_SPIN, word, f->rdx, f->rcx);
	dg_free_expect(!e || !e->result || *word & DG_SPIN_TAKEN, e);
	if (e && !e->result)
		dg_sync_expect(!dg_spin_try(word, dg_me->index), e, 0, *word);
}
