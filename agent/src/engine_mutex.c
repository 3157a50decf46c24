/* Mutexes and spin locks. The fast path of a mutex, and what a signal's handler
 * has to know of it, is in wrap_mutex.c. */
#include "engine.h"
#include "sync.h"

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

/* Nobody else runs, so it is free or the log is of another program. */
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
			if (i % DG_SPIN_YIELD)
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
	if (e && !e->result)
		dg_sync_expect(!dg_spin_try(word, dg_me->index), e, 0, *word);
}

/* wrap_mutex.c */
extern const char dg_lock_again[] DG_HIDDEN, dg_lock_exchanged[] DG_HIDDEN, dg_lock_has[] DG_HIDDEN,
	dg_lock_counted[] DG_HIDDEN, dg_lock_done[] DG_HIDDEN, dg_lock_gives_up[] DG_HIDDEN, dg_lock_gave_up[] DG_HIDDEN,
	dg_lock_slow_end[] DG_HIDDEN;
extern const char dg_wake_branch[] DG_HIDDEN, dg_wake_done[] DG_HIDDEN, dg_wake_low[] DG_HIDDEN, dg_wake_made[] DG_HIDDEN,
	dg_wake_took[] DG_HIDDEN, dg_wake_high[] DG_HIDDEN;

static void dg_sync_places(struct dg_control *c)
{
	c->wake_branch = (uint64_t)dg_wake_branch;
	c->wake_low = (uint64_t)dg_wake_low;
	c->wake_high = (uint64_t)dg_wake_high;
	c->wake_done = (uint64_t)dg_wake_done;
}

#define DG_FLAGS_STATUS 0x8d5ull /* carry, parity, auxiliary, zero, sign, overflow */
#define DG_FLAG_ZERO 0x40ull
#define DG_FLAGS_OF_ZERO 0x44ull /* as xor leaves them */

static void dg_settle_at(uint64_t *r, const char *where)
{
	r[DG_REG_RIP] = (uint64_t)where;
	r[DG_REG_RAX] = r[DG_REG_RCX] = 0;
	r[DG_REG_FLAGS] = (r[DG_REG_FLAGS] & ~DG_FLAGS_STATUS) | DG_FLAGS_OF_ZERO;
}

/* Back to the start of the attempt; what it had taken is given back. Who came to
 * wait for it meanwhile is woken by the unlock that follows the next attempt. */
static void dg_settle_lock(uint64_t *r, bool has)
{
	if (has)
		__atomic_store_n((uint32_t *)r[DG_REG_RDI], 0, __ATOMIC_SEQ_CST);
	dg_settle_at(r, dg_lock_again);
}

static void dg_settle_wake(uint64_t *r, uint64_t pc)
{
	long woken = (long)r[DG_REG_RAX];

	if (pc == (uint64_t)dg_wake_branch || pc < (uint64_t)dg_wake_made)
		woken = dg_sys3(SYS_futex, r[DG_REG_RDI], FUTEX_WAKE_PRIVATE, r[DG_REG_R9]);
	if (woken > 0 && (pc < (uint64_t)dg_wake_took || pc == (uint64_t)dg_wake_branch))
		__atomic_sub_fetch((uint32_t *)r[DG_REG_R8], (uint32_t)woken, __ATOMIC_RELAXED);
	dg_settle_at(r, dg_wake_done);
	r[DG_REG_RDX] = r[DG_REG_RSI] = r[DG_REG_R11] = 0;
}

/* For a handler that found the thread outside of the engine, before anything is
 * made of the interrupted state. A few instructions of a lock's fast path and of
 * a wake-up depend on what other threads do, so a replay does not come to the
 * same: the thread is moved to a place near by that it comes to in any case. */
static void dg_sync_settle(uint64_t *registers)
{
	uint64_t *r = registers, pc = r[DG_REG_RIP];

	if (dg_pc_in(pc, dg_lock_again + 1, dg_lock_exchanged))
		dg_settle_lock(r, false);
	else if (dg_pc_in(pc, dg_lock_exchanged, dg_lock_has))
		dg_settle_lock(r, r[DG_REG_FLAGS] & DG_FLAG_ZERO);
	else if (dg_pc_in(pc, dg_lock_has, dg_lock_counted))
		dg_settle_lock(r, true);
	else if (dg_pc_in(pc, dg_lock_counted, dg_lock_done))
		dg_settle_at(r, dg_lock_done);
	else if (dg_pc_in(pc, dg_lock_gives_up, dg_lock_gave_up))
		dg_settle_lock(r, true);
	else if (dg_pc_in(pc, dg_lock_gave_up, dg_lock_slow_end))
		dg_settle_lock(r, false);
	else if (pc == (uint64_t)dg_wake_branch || dg_pc_in(pc, dg_wake_low, dg_wake_high))
		dg_settle_wake(r, pc);
}
