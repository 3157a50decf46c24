/* Locks of readers and writers, and spin locks. */
#include "agent.h"
#include "engine/sync.h"

#include <pthread.h>

static int dg_rw_unknown(struct dg_rwlock *l, enum dg_sync how, const struct dg_until *until)
{
	bool reads = how == DG_SYNC_READ || how == DG_SYNC_TRY_READ || how == DG_SYNC_TIMED_READ;
	dg_attempt *attempt = reads ? dg_rw_read_attempt : dg_rw_write_attempt;
	const uint32_t *word;
	uint32_t value;

	if (how == DG_SYNC_TRY || how == DG_SYNC_TRY_READ)
		return attempt(l, dg_tid(), &word, &value) ? EBUSY : 0;
	return dg_acquire_unknown(attempt, l, until);
}

static int dg_rw_real_lock(pthread_rwlock_t *l, enum dg_sync how, const struct dg_until *until)
{
	switch (how) {
	case DG_SYNC_READ:
		return dg_real.pthread_rwlock_rdlock(l);
	case DG_SYNC_TRY_READ:
		return dg_real.pthread_rwlock_tryrdlock(l);
	case DG_SYNC_TIMED_READ:
		return dg_real.pthread_rwlock_clockrdlock(l, (clockid_t)until->clock, &until->at);
	case DG_SYNC_TRY:
		return dg_real.pthread_rwlock_trywrlock(l);
	case DG_SYNC_TIMED:
		return dg_real.pthread_rwlock_clockwrlock(l, (clockid_t)until->clock, &until->at);
	default:
		return dg_real.pthread_rwlock_wrlock(l);
	}
}

/* A replay: what other processes do to it is not there, so a lock that cannot be
 * had is taken for one that they have given back. */
static void dg_rw_real_had(pthread_rwlock_t *l, bool reads)
{
	__typeof__(&pthread_rwlock_trywrlock) lock = reads ? dg_real.pthread_rwlock_tryrdlock : dg_real.pthread_rwlock_trywrlock;

	if (!lock(l))
		return;
	((struct dg_rwlock *)l)->readers = 0;
	((struct dg_rwlock *)l)->writer = 0;
	lock(l);
}

static int dg_rw_lock(pthread_rwlock_t *lock, uint64_t site, enum dg_sync how, const struct dg_until *until)
{
	struct dg_rwlock *l = (struct dg_rwlock *)lock;
	bool reads = how == DG_SYNC_READ || how == DG_SYNC_TRY_READ || how == DG_SYNC_TIMED_READ;
	int result;

	if (!dg_sync_ours)
		return dg_rw_real_lock(lock, how, until);
	if (l->shared) {
		result = DG_REAL_EVENT(DG_EV_RWLOCK, lock, 0, site, dg_rw_real_lock(lock, how, until));
		if (!result && dg_replays())
			dg_rw_real_had(lock, reads);
		return result;
	}
	if (!dg_me)
		return dg_rw_unknown(l, how, until);
	return (int)dg_engine(DG_OP_RWLOCK, (long)l, (long)site, how, (long)until, 0);
}

DG_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	return dg_rw_lock(l, DG_SITE(), DG_SYNC_READ, NULL);
}

DG_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	return dg_rw_lock(l, DG_SITE(), DG_SYNC_TRY_READ, NULL);
}

DG_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	return dg_rw_lock(l, DG_SITE(), DG_SYNC_LOCK, NULL);
}

DG_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	return dg_rw_lock(l, DG_SITE(), DG_SYNC_TRY, NULL);
}

static int dg_rw_lock_until(pthread_rwlock_t *l, uint64_t site, enum dg_sync how, clockid_t clock, const struct timespec *at)
{
	struct dg_until until;

	if (!dg_until_set(&until, clock, at))
		return EINVAL;
	return dg_rw_lock(l, site, how, &until);
}

DG_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *at)
{
	return dg_rw_lock_until(l, DG_SITE(), DG_SYNC_TIMED_READ, CLOCK_REALTIME, at);
}

DG_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at)
{
	return dg_rw_lock_until(l, DG_SITE(), DG_SYNC_TIMED_READ, clock, at);
}

DG_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *at)
{
	return dg_rw_lock_until(l, DG_SITE(), DG_SYNC_TIMED, CLOCK_REALTIME, at);
}

DG_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at)
{
	return dg_rw_lock_until(l, DG_SITE(), DG_SYNC_TIMED, clock, at);
}

/* Whether others still read is not asked, for a replay may find another answer:
 * who is woken too early sleeps again. */
DG_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	struct dg_rwlock *l = (struct dg_rwlock *)lock;

	if (!dg_sync_ours || l->shared)
		return dg_real.pthread_rwlock_unlock(lock);
	if (__atomic_load_n(&l->writer, __ATOMIC_RELAXED) == dg_sync_tid()) {
		__atomic_store_n(&l->writer, 0, __ATOMIC_RELAXED);
		__atomic_exchange_n(&l->readers, 0, __ATOMIC_SEQ_CST);
	} else {
		__atomic_fetch_sub(&l->readers, DG_RW_READER, __ATOMIC_SEQ_CST);
	}
	return dg_wake(&l->readers, INT_MAX);
}

DG_ALSO(pthread_rwlock_rdlock);
DG_ALSO(pthread_rwlock_tryrdlock);
DG_ALSO(pthread_rwlock_wrlock);
DG_ALSO(pthread_rwlock_trywrlock);
DG_ALSO(pthread_rwlock_unlock);

/* ---- spin locks ---- */

DG_EXPORT int pthread_spin_init(pthread_spinlock_t *lock, int shared)
{
	if (!dg_sync_ours || shared == PTHREAD_PROCESS_SHARED)
		return dg_real.pthread_spin_init(lock, shared);
	*lock = (int)dg_spin_free_by(0);
	return 0;
}

/* As a mutex's: taken again by its last owner, within the budget. */
static bool dg_spin_again(uint32_t *word, struct dg_rthread *me)
{
	uint32_t free = dg_spin_free_by(me->index);

	if (!me->budget || !__atomic_compare_exchange_n(word, &free, free | DG_SPIN_TAKEN, false, __ATOMIC_ACQUIRE,
							__ATOMIC_RELAXED))
		return false;
	/* One instruction: a handler's event sets it again. */
	__asm__ volatile("subq $1, %0" : "+m"(me->budget) : : "cc");
	return true;
}

static int dg_spin_unknown(uint32_t *word, enum dg_sync how)
{
	int result;

	for (;;) {
		result = dg_spin_try(word, 0);
		if (!result || how == DG_SYNC_TRY)
			return result;
		__builtin_ia32_pause();
	}
}

static int dg_spin_real(pthread_spinlock_t *lock, uint64_t site, enum dg_sync how)
{
	int result = DG_REAL_EVENT(DG_EV_SPIN, lock, 0, site,
				   how == DG_SYNC_TRY ? dg_real.pthread_spin_trylock(lock) : dg_real.pthread_spin_lock(lock));

	if (!result && dg_replays())
		*lock = 0;
	return result;
}

static int dg_spin_lock(pthread_spinlock_t *lock, uint64_t site, enum dg_sync how)
{
	uint32_t *word = (uint32_t *)lock;
	int result;

	if (dg_spin_is_real(__atomic_load_n(word, __ATOMIC_RELAXED)))
		return dg_spin_real(lock, site, how);
	if (!dg_me)
		return dg_spin_unknown(word, how);
	if (how == DG_SYNC_LOCK && dg_spin_again(word, dg_me))
		result = 0;
	else
		result = (int)dg_engine(DG_OP_SPIN, (long)word, (long)site, how, 0, 0);
	dg_scrub();
	return result;
}

DG_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	if (!dg_sync_ours)
		return dg_real.pthread_spin_lock(lock);
	return dg_spin_lock((pthread_spinlock_t *)lock, DG_SITE(), DG_SYNC_LOCK);
}

DG_EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
	if (!dg_sync_ours)
		return dg_real.pthread_spin_trylock(lock);
	return dg_spin_lock((pthread_spinlock_t *)lock, DG_SITE(), DG_SYNC_TRY);
}

DG_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	uint32_t word = __atomic_load_n((const uint32_t *)lock, __ATOMIC_RELAXED);
	uint32_t index = dg_me ? dg_me->index : 0;

	if (!dg_sync_ours || dg_spin_is_real(word))
		return dg_real.pthread_spin_unlock(lock);
	/* Undone by a thread that did not take it: without a fast path from now on. */
	word = word == (dg_spin_free_by(index) | DG_SPIN_TAKEN) ? dg_spin_free_by(index) : dg_spin_free_by(0);
	__atomic_store_n((uint32_t *)lock, word, __ATOMIC_RELEASE);
	return 0;
}
