/* Our own implementation of libc's synchronisation. It is made so that the bytes
 * of a variable follow from the order of events alone: a thread that waits writes
 * nothing into it. How many wait is counted outside, in the engine's range, by
 * the variable's address; they sleep on a word of the variable that the release
 * changes.
 *
 * A thread that is about to sleep counts itself (a locked instruction), looks
 * again, and lets the kernel compare the word once more. Whoever releases changes
 * the word first (locked as well) and looks at the count then, so one of the two
 * sees the other. He wakes and takes off the count as many as the kernel says
 * that it has woken; a thread that wakes by itself takes itself off. A release does not
 * touch the variable after its change: it may be gone then. A wake-up at an
 * address that has become something else is harmless, as futex(2) demands.
 *
 * Where glibc has a meaning for a field (owner, count, kind, clock, value), ours
 * is the same, for debuggers and for reports of what a thread waits for.
 *
 * This file is part of both translation units: the engine has dg_sleep of its
 * own, which signals interrupt; threads that the engine does not know use
 * wrap/sync.c's. */
#ifndef DG_SYNC_H
#define DG_SYNC_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "engine/engine.h"
#include "syscall.h"

/* wrap/mutex.c's assembly has these numbers as well. */
#define DG_WAIT_COUNTS 16384u
#define DG_WAIT_SHIFT 3

struct dg_sync_table {
	uint32_t waiters[DG_WAIT_COUNTS]; /* by address */
	uint32_t writers[DG_WAIT_COUNTS]; /* of rwlocks: those of them that want to write */
	uint32_t fork_generation;         /* see dg_once */
};

/* Whether the variables of this process are ours. It never changes back, for a
 * variable must not be glibc's and ours alternately. */
extern bool dg_sync_ours DG_HIDDEN;

#define DG_SYNC_TABLE ((struct dg_sync_table *)DG_ENGINE_SYNC)

static inline uint32_t dg_wait_slot(const void *word)
{
	return ((uint32_t)(uintptr_t)word >> DG_WAIT_SHIFT) & (DG_WAIT_COUNTS - 1);
}

static inline uint32_t *dg_wait_count(const void *word)
{
	return &DG_SYNC_TABLE->waiters[dg_wait_slot(word)];
}

/* An absolute time, copied from the program where a bad pointer is its own. */
struct dg_until {
	struct timespec at;
	int64_t clock;
};

static inline bool dg_until_valid(const struct dg_until *u)
{
	return u->at.tv_nsec >= 0 && u->at.tv_nsec < 1000000000;
}

/* Sleeps while the word has this value: 0 when woken, or a negative errno. EINTR,
 * ERESTART: a signal's handler wants to run; after it, the kernel would return
 * from such a wait, or continue with it. */
static long dg_sleep(const void *word, uint32_t expected, const struct dg_until *until);

/* A futex's arguments; false: the time has passed already. */
static inline bool dg_futex_wait_args(uint64_t args[6], const void *word, uint32_t expected, const struct dg_until *until)
{
	uint64_t op = until ? FUTEX_WAIT_BITSET : FUTEX_WAIT;

	if (until && until->at.tv_sec < 0)
		return false;
	if (until && until->clock == CLOCK_REALTIME)
		op |= FUTEX_CLOCK_REALTIME;
	args[0] = (uint64_t)word;
	args[1] = op | FUTEX_PRIVATE_FLAG;
	args[2] = expected;
	args[3] = until ? (uint64_t)&until->at : 0;
	args[4] = 0;
	args[5] = FUTEX_BITSET_MATCH_ANY;
	return true;
}

static inline void dg_wake_word(const void *word, int most)
{
	uint32_t *count = dg_wait_count(word);
	long woken;

	if (!__atomic_load_n(count, __ATOMIC_SEQ_CST))
		return;
	woken = dg_sys3(SYS_futex, word, FUTEX_WAKE_PRIVATE, most);
	if (woken > 0)
		__atomic_sub_fetch(count, (uint32_t)woken, __ATOMIC_RELAXED);
}

/* What can be taken, or not yet. */
enum { DG_TAKEN = 0, DG_MUST_WAIT = -1 };

/* Tries; DG_MUST_WAIT with the value that *word has while it is to be waited. Any
 * other result ends the wait. */
typedef int dg_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value);

#define DG_SPINS 100

/* 0, an errno of the attempt, ETIMEDOUT, EINVAL (of the time), EINTR, ERESTART. */
static inline int dg_acquire(dg_attempt *attempt, void *variable, uint32_t tid, const struct dg_until *until)
{
	const uint32_t *word;
	uint32_t value, *count;
	int result;
	long slept;

	for (int i = 0; i < DG_SPINS; i++) {
		result = attempt(variable, tid, &word, &value);
		if (result != DG_MUST_WAIT)
			return result;
		__builtin_ia32_pause();
	}
	if (until && !dg_until_valid(until))
		return EINVAL;
	for (;;) {
		count = dg_wait_count(word);
		__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
		slept = 0;
		result = attempt(variable, tid, &word, &value);
		if (result == DG_MUST_WAIT)
			slept = dg_sleep(word, value, until);
		if (result != DG_MUST_WAIT || slept)
			__atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
		if (result != DG_MUST_WAIT)
			return result;
		/* Who was woken must have tried before he may give up. */
		result = attempt(variable, tid, &word, &value);
		if (result != DG_MUST_WAIT)
			return result;
		if (slept && slept != -EAGAIN)
			return (int)-slept;
	}
}

/* ---- mutexes ---- */

/* glibc's pthread_mutex_t (sysdeps/x86/nptl/bits/struct_mutex.h). */
struct dg_mutex {
	uint32_t lock; /* 0: free, 1: taken */
	uint32_t count;
	uint32_t owner;
	uint32_t users;
	uint32_t kind;
	uint32_t spins;
	uint32_t last; /* index of the thread that had it last; glibc uses this for robust ones alone */
	uint32_t unused[3];
};

/* nptl/pthreadP.h */
#define DG_MUTEX_TYPE 3u
#define DG_MUTEX_RECURSIVE 1u
#define DG_MUTEX_ERRORCHECK 2u
#define DG_MUTEX_ROBUST 16u
#define DG_MUTEX_NOT_OURS 0xf0u /* robust, priority inheritance, protection; shared between processes */

static inline bool dg_mutex_is_real(const struct dg_mutex *m)
{
	return m->kind & DG_MUTEX_NOT_OURS;
}

static inline int dg_mutex_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_mutex *m = variable;
	uint32_t now = __atomic_load_n(&m->lock, __ATOMIC_RELAXED);

	(void)tid;
	*word = &m->lock;
	if (!now && __atomic_compare_exchange_n(&m->lock, &now, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return DG_TAKEN;
	/* It is 1, unless the memory is no mutex any more: a sleep that expects 1 would return at once, again and again. */
	*value = now;
	return DG_MUST_WAIT;
}

static inline int dg_mutex_try(struct dg_mutex *m)
{
	uint32_t free = 0;

	return __atomic_compare_exchange_n(&m->lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ? 0 : EBUSY;
}

/* The lock itself is taken. */
static inline void dg_mutex_own(struct dg_mutex *m, uint32_t tid, uint32_t index)
{
	m->owner = tid;
	m->last = index;
	if ((m->kind & DG_MUTEX_TYPE) == DG_MUTEX_RECURSIVE)
		m->count = 1;
}

/* ---- rwlocks ---- */

/* glibc's pthread_rwlock_t (sysdeps/x86/nptl/bits/struct_rwlock.h). */
struct dg_rwlock {
	uint32_t readers; /* their number * 8, as in glibc; DG_RW_WRITER */
	uint32_t unused[5];
	uint32_t writer; /* its tid */
	uint32_t shared;
	uint64_t unused2[2];
	uint32_t kind;
};

#define DG_RW_READER 8u
#define DG_RW_WRITER 3u /* glibc's PTHREAD_RWLOCK_WRPHASE and _WRLOCKED */
#define DG_RW_PREFERS_WRITER 2u
_Static_assert(offsetof(struct dg_rwlock, writer) == 24, "__cur_writer");
_Static_assert(offsetof(struct dg_rwlock, kind) == 48, "__flags");

static inline int dg_rw_read_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_rwlock *l = variable;
	uint32_t seen = __atomic_load_n(&l->readers, __ATOMIC_RELAXED);

	*word = &l->readers;
	for (;;) {
		*value = seen;
		if (seen & DG_RW_WRITER)
			return __atomic_load_n(&l->writer, __ATOMIC_RELAXED) == tid ? EDEADLK : DG_MUST_WAIT;
		if (seen > UINT32_MAX - DG_RW_READER)
			return EAGAIN;
		if (__atomic_compare_exchange_n(&l->readers, &seen, seen + DG_RW_READER, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return DG_TAKEN;
	}
}

static inline int dg_rw_write_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_rwlock *l = variable;
	uint32_t seen = 0;

	*word = &l->readers;
	if (__atomic_compare_exchange_n(&l->readers, &seen, DG_RW_WRITER, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		__atomic_store_n(&l->writer, tid, __ATOMIC_RELAXED);
		return DG_TAKEN;
	}
	*value = seen;
	return __atomic_load_n(&l->writer, __ATOMIC_RELAXED) == tid ? EDEADLK : DG_MUST_WAIT;
}

/* ---- condition variables ---- */

/* glibc's pthread_cond_t; ours only counts the signals, where glibc's waiters
 * sleep. */
struct dg_cond {
	uint32_t unused[9];
	uint32_t flags;    /* glibc's __wrefs: shared, clock, and its waiters * 8 */
	uint32_t sequence; /* 0 as long as no thread has waited, so that memory that was cleared is not what a late sleeper expects */
	uint32_t unused2;
};

#define DG_COND_SHARED 1u
#define DG_COND_MONOTONIC 2u
#define DG_COND_DESTROYED 4u
#define DG_COND_REAL 0x80000000u /* ours: waiters have a mutex that is glibc's, so they are too */
_Static_assert(offsetof(struct dg_cond, flags) == 36, "__wrefs");
_Static_assert(sizeof(struct dg_cond) == 48, "pthread_cond_t");

/* Of a thread that waits on a condition variable; on its own stack, so its
 * members must be the same in a replay. */
struct dg_cond_wait {
	struct dg_cond *cond;
	struct dg_mutex *mutex;
	uint64_t site;
	const struct dg_until *until; /* NULL: for ever */
	uint32_t step;                /* enum dg_cond_step */
	uint32_t nested;              /* of a recursive mutex that stays taken */
	int32_t result;
	uint32_t polls;               /* 1: one of the short waits that a call makes */
};

enum dg_cond_step {
	DG_COND_HOLDS = 0,       /* the mutex, before or after */
	DG_COND_WAITS = 1,
	DG_COND_INTERRUPTED = 2, /* by a signal's handler; wants the mutex */
};

static inline uint32_t dg_cond_sequence(struct dg_cond *c)
{
	uint32_t seen = __atomic_load_n(&c->sequence, __ATOMIC_RELAXED);

	if (!seen && __atomic_compare_exchange_n(&c->sequence, &seen, 2, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		seen = 2;
	return seen;
}

/* ---- semaphores ---- */

/* glibc's struct new_sem where it has 64-bit atomics. */
struct dg_sem {
	uint32_t value;
	uint32_t waiters; /* glibc's own, of shared ones */
	uint32_t shared;
	uint32_t unused;
};

static inline int dg_sem_attempt(void *variable, uint32_t tid, const uint32_t **word, uint32_t *value)
{
	struct dg_sem *s = variable;
	uint32_t seen = __atomic_load_n(&s->value, __ATOMIC_RELAXED);

	(void)tid;
	*word = &s->value;
	*value = 0;
	while (seen)
		if (__atomic_compare_exchange_n(&s->value, &seen, seen - 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return DG_TAKEN;
	return DG_MUST_WAIT;
}

/* ---- barriers ---- */

/* glibc's struct pthread_barrier (internaltypes.h). */
struct dg_barrier {
	uint32_t in;    /* of this round */
	uint32_t round; /* from 1, once one has arrived */
	uint32_t count;
	uint32_t shared;
	uint32_t out;
};

struct dg_barrier_wait {
	struct dg_barrier *barrier;
	uint64_t site;
	uint32_t arrived;
	uint32_t round;
};

/* ---- once ---- */

/* pthread_once_t: 0, glibc's __PTHREAD_ONCE_INPROGRESS with the number of forks
 * (an initialiser whose thread does not exist in a fork's child is run again), _DONE. A guard
 * of a static variable (Itanium C++ ABI, 2.8): its first byte is what compilers
 * test. */
#define DG_ONCE_RUNS 1u
#define DG_ONCE_DONE 2u
#define DG_GUARD_DONE 1u
#define DG_GUARD_RUNS 0x100u

enum dg_once_phase { DG_ONCE_ASK = 0, DG_ONCE_FINISH = 1, DG_ONCE_ABANDON = 2 };

/* ---- spin locks ---- */

/* Ours: free 0x80000000 | last owner's index << 2, taken + 1. glibc's, of shared
 * ones and of words that were never initialised: free 1, taken 0 or a little less. */
#define DG_SPIN_OURS 0x80000000u
#define DG_SPIN_MASK 0xff000000u
#define DG_SPIN_TAKEN 1u

static inline uint32_t dg_spin_free_by(uint32_t index)
{
	return DG_SPIN_OURS | index << 2;
}

static inline uint32_t dg_spin_last(uint32_t word)
{
	return (word & ~DG_SPIN_MASK) >> 2;
}

static inline bool dg_spin_is_real(uint32_t word)
{
	return (word & DG_SPIN_MASK) != DG_SPIN_OURS;
}

static inline int dg_spin_try(uint32_t *word, uint32_t index)
{
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (!(seen & DG_SPIN_TAKEN) && __atomic_compare_exchange_n(word, &seen, dg_spin_free_by(index) | DG_SPIN_TAKEN, false,
								   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	return EBUSY;
}

#endif
