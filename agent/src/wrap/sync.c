/* Condition variables, semaphores, barriers, and initialisation that one thread
 * does. A wait that is a cancellation point lets a cancellation act at any time
 * while the thread is in the engine, as glibc's own waits do; dg_wait_personality
 * is what takes the mutex again then. */
#include "agent.h"
#include "engine/sync.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

/* dg_engine, and a call of a function, in frames with a personality of ours. */
long dg_engine_cancellable(long op, long a, long b, long c, long d, long e) DG_HIDDEN;
void dg_run_once(void (*initialise)(void)) DG_HIDDEN;
int dg_wait_personality(int version, int actions, uint64_t class, void *exception, void *context) DG_HIDDEN;
int dg_once_personality(int version, int actions, uint64_t class, void *exception, void *context) DG_HIDDEN;

/* 0x1b: relative to the place, four bytes. */
__asm__(
	".text\n"
	"	.globl	dg_engine_cancellable, dg_run_once\n"
	"	.hidden	dg_engine_cancellable, dg_run_once\n"
	"	.type	dg_engine_cancellable, @function\n"
	"	.type	dg_run_once, @function\n"
	"dg_engine_cancellable:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, dg_wait_personality\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	dg_engine\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	dg_engine_cancellable, .-dg_engine_cancellable\n"
	"dg_run_once:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, dg_once_personality\n"
	"	subq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call	*%rdi\n"
	"	addq	$8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size	dg_run_once, .-dg_run_once\n");

/* unwind.h's, which C programs need not have. */
#define DG_UNWIND_CLEANUP 2
#define DG_UNWIND_GOES_ON 8

/* ---- condition variables ---- */

/* What this thread waits for, as far as dg_wait_personality is concerned. */
static __thread struct dg_cond_wait *dg_cond_waits __attribute__((tls_model("initial-exec")));

int dg_wait_personality(int version, int actions, uint64_t class, void *exception, void *context)
{
	struct dg_cond_wait *w = dg_cond_waits;

	(void)version, (void)class, (void)exception, (void)context;
	if (!(actions & DG_UNWIND_CLEANUP) || !w)
		return DG_UNWIND_GOES_ON;
	dg_cond_waits = NULL;
	if (w->step != DG_COND_HOLDS)
		dg_engine(DG_OP_COND_WAIT, (long)w, 0, 0, 0, 0);
	return DG_UNWIND_GOES_ON;
}

static int dg_cond_wait_known(struct dg_cond_wait *w)
{
	int type, result;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	dg_cond_waits = w;
	result = (int)dg_engine_cancellable(DG_OP_COND_WAIT, (long)w, 0, 0, 0, 0);
	dg_cond_waits = NULL;
	pthread_setcanceltype(type, NULL);
	return result;
}

static int dg_cond_wait_unknown(struct dg_cond_wait *w)
{
	uint32_t *count = dg_wait_count(&w->cond->sequence);
	uint32_t sequence = dg_cond_sequence(w->cond);
	long slept;

	__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
	dg_mutex_unlock_kind(w->mutex);
	slept = dg_sleep(&w->cond->sequence, sequence, w->until);
	if (slept)
		__atomic_sub_fetch(count, 1, __ATOMIC_RELAXED);
	dg_mutex_lock_as(w->mutex, w->site, DG_SYNC_LOCK, NULL);
	return slept == -ETIMEDOUT ? ETIMEDOUT : 0;
}

static int dg_cond_real(struct dg_cond_wait *w)
{
	pthread_cond_t *cond = (pthread_cond_t *)w->cond;
	pthread_mutex_t *mutex = (pthread_mutex_t *)w->mutex;

	if (w->until)
		return dg_real.pthread_cond_clockwait(cond, mutex, (clockid_t)w->until->clock, &w->until->at);
	return dg_real.pthread_cond_wait(cond, mutex);
}

static bool dg_cond_is_real(const struct dg_cond *c)
{
	return __atomic_load_n(&c->flags, __ATOMIC_RELAXED) & (DG_COND_SHARED | DG_COND_REAL);
}

/* With a mutex that is glibc's, so is the wait, and the variable from now on. The
 * mutex keeps others from waiting on it at the same time. */
static int dg_cond_wait_real(struct dg_cond_wait *w)
{
	int result;

	if (!dg_cond_is_real(w->cond)) {
		w->cond->sequence = 0;
		__atomic_fetch_or(&w->cond->flags, DG_COND_REAL, __ATOMIC_RELAXED);
	}
	if (dg_replays())
		dg_real.pthread_mutex_unlock((pthread_mutex_t *)w->mutex);
	result = DG_REAL_EVENT(DG_EV_COND, w->cond, sizeof(*w->cond), w->site, dg_cond_real(w));
	if (dg_replays())
		dg_mutex_real_had(w->mutex, result);
	return result;
}

#define DG_COND_POLL_NS 2000000

static bool dg_cond_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* A shared variable is glibc's, and cannot be waited on with a mutex that is not.
 * The wait is short, on a variable that no thread signals, and wakes up for no
 * reason, as it may. */
static int dg_cond_poll(const struct dg_cond_wait *w)
{
	struct dg_cond nobody = { .flags = 0 };
	struct dg_until soon = { .clock = w->until ? w->until->clock : CLOCK_MONOTONIC };
	struct dg_cond_wait poll = { &nobody, w->mutex, w->site, &soon, 0, w->nested, 0, 1 };
	bool last;
	int result;

	clock_gettime((clockid_t)soon.clock, &soon.at);
	soon.at.tv_nsec += DG_COND_POLL_NS;
	if (soon.at.tv_nsec >= 1000000000) {
		soon.at.tv_nsec -= 1000000000;
		soon.at.tv_sec++;
	}
	last = w->until && !dg_cond_before(&soon.at, &w->until->at);
	if (last)
		soon.at = w->until->at;
	result = dg_cond_wait_known(&poll);
	return last ? result : 0;
}

static int dg_cond_wait(struct dg_cond_wait *w)
{
	const struct dg_mutex *m = w->mutex;

	if (w->until && !dg_until_valid(w->until))
		return EINVAL;
	if (!dg_sync_ours)
		return dg_cond_real(w);
	if (dg_mutex_is_real(m))
		return dg_cond_wait_real(w);
	if ((dg_mutex_counts(m) || dg_mutex_checks(m)) && !dg_mutex_mine(m))
		return EPERM;
	if (!dg_me)
		return dg_cond_wait_unknown(w);
	w->nested = dg_mutex_counts(m) && m->count > 1;
	if (dg_cond_is_real(w->cond))
		return dg_cond_poll(w);
	return dg_cond_wait_known(w);
}

static clockid_t dg_cond_clock(const struct dg_cond *c)
{
	return c->flags & DG_COND_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

DG_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	struct dg_cond_wait w = { (struct dg_cond *)cond, (struct dg_mutex *)mutex, DG_SITE(), NULL, 0, 0, 0, 0 };

	return dg_cond_wait(&w);
}

static int dg_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t site, clockid_t clock,
			      const struct timespec *at)
{
	struct dg_until until;
	struct dg_cond_wait w = { (struct dg_cond *)cond, (struct dg_mutex *)mutex, site, &until, 0, 0, 0, 0 };

	return dg_until_set(&until, clock, at) ? dg_cond_wait(&w) : EINVAL;
}

DG_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at)
{
	return dg_cond_wait_until(cond, mutex, DG_SITE(), dg_cond_clock((struct dg_cond *)cond), at);
}

DG_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	return dg_cond_wait_until(cond, mutex, DG_SITE(), clock, at);
}

DG_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	struct dg_cond *c = (struct dg_cond *)cond;

	if (!dg_sync_ours)
		return dg_real.pthread_cond_signal(cond);
	/* In a replay no thread waits, though the variable may say so. */
	if (dg_cond_is_real(c))
		return dg_replays() ? 0 : DG_WITHIN_REAL(dg_real.pthread_cond_signal(cond));
	__atomic_add_fetch(&c->sequence, 1, __ATOMIC_SEQ_CST);
	return dg_wake(&c->sequence, 1);
}

DG_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	struct dg_cond *c = (struct dg_cond *)cond;

	if (!dg_sync_ours)
		return dg_real.pthread_cond_broadcast(cond);
	if (dg_cond_is_real(c))
		return dg_replays() ? 0 : DG_WITHIN_REAL(dg_real.pthread_cond_broadcast(cond));
	__atomic_add_fetch(&c->sequence, 1, __ATOMIC_SEQ_CST);
	return dg_wake(&c->sequence, INT_MAX);
}

/* Who was woken does not look at the variable again. */
DG_EXPORT int pthread_cond_destroy(pthread_cond_t *cond)
{
	struct dg_cond *c = (struct dg_cond *)cond;

	if (!dg_sync_ours)
		return dg_real.pthread_cond_destroy(cond);
	if (!dg_cond_is_real(c))
		return 0;
	__atomic_fetch_and(&c->flags, ~DG_COND_REAL, __ATOMIC_RELAXED);
	if (!dg_replays())
		return dg_real.pthread_cond_destroy(cond);
	/* What glibc's function leaves, without its wait for waiters, who are none. */
	c->flags |= DG_COND_DESTROYED;
	return 0;
}

/* ---- semaphores ---- */

static int dg_errno(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static int dg_sem_real(sem_t *sem, enum dg_sync how, const struct dg_until *until)
{
	int result;

	if (how == DG_SYNC_TRY)
		result = dg_real.sem_trywait(sem);
	else if (until)
		result = dg_real.sem_clockwait(sem, (clockid_t)until->clock, &until->at);
	else
		result = dg_real.sem_wait(sem);
	return result ? errno : 0;
}

static int dg_sem_wait_real(sem_t *sem, uint64_t site, enum dg_sync how, const struct dg_until *until)
{
	int result = DG_REAL_EVENT(DG_EV_SEM, sem, 0, site, dg_sem_real(sem, how, until));

	/* A replay: posts of other processes are not there. */
	if (!result && dg_replays())
		dg_real.sem_trywait(sem);
	return result;
}

static int dg_sem_wait_unknown(struct dg_sem *s, enum dg_sync how, const struct dg_until *until)
{
	const uint32_t *word;
	uint32_t value;

	if (how == DG_SYNC_TRY)
		return dg_sem_attempt(s, 0, &word, &value) ? EAGAIN : 0;
	return dg_acquire(dg_sem_attempt, s, 0, until);
}

static int dg_sem_wait(sem_t *sem, uint64_t site, enum dg_sync how, const struct dg_until *until)
{
	struct dg_sem *s = (struct dg_sem *)sem;
	int type, result;

	if (!dg_sync_ours)
		return dg_sem_real(sem, how, until);
	if (s->shared)
		return dg_sem_wait_real(sem, site, how, until);
	if (!dg_me)
		return dg_sem_wait_unknown(s, how, until);
	if (how == DG_SYNC_TRY)
		return (int)dg_engine(DG_OP_SEM, (long)s, (long)site, how, 0, 0);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = (int)dg_engine(DG_OP_SEM, (long)s, (long)site, how, (long)until, 0);
	pthread_setcanceltype(type, NULL);
	return result;
}

DG_EXPORT int sem_wait(sem_t *sem)
{
	return dg_errno(dg_sem_wait(sem, DG_SITE(), DG_SYNC_WAIT, NULL));
}

DG_EXPORT int sem_trywait(sem_t *sem)
{
	return dg_errno(dg_sem_wait(sem, DG_SITE(), DG_SYNC_TRY, NULL));
}

DG_EXPORT int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *at)
{
	struct dg_until until;

	if (!dg_until_set(&until, clock, at) || !dg_until_valid(&until))
		return dg_errno(EINVAL);
	return dg_errno(dg_sem_wait(sem, DG_SITE(), DG_SYNC_TIMED_WAIT, &until));
}

DG_EXPORT int sem_timedwait(sem_t *sem, const struct timespec *at)
{
	struct dg_until until;

	dg_until_set(&until, CLOCK_REALTIME, at);
	if (!dg_until_valid(&until))
		return dg_errno(EINVAL);
	return dg_errno(dg_sem_wait(sem, DG_SITE(), DG_SYNC_TIMED_WAIT, &until));
}

DG_EXPORT int sem_post(sem_t *sem)
{
	struct dg_sem *s = (struct dg_sem *)sem;
	uint32_t seen;

	if (!dg_sync_ours || s->shared)
		return dg_real.sem_post(sem);
	seen = __atomic_load_n(&s->value, __ATOMIC_RELAXED);
	do {
		if (seen >= SEM_VALUE_MAX)
			return dg_errno(EOVERFLOW);
	} while (!__atomic_compare_exchange_n(&s->value, &seen, seen + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return dg_wake(&s->value, 1);
}

static int dg_sem_real_value(sem_t *sem)
{
	int value = 0;

	dg_real.sem_getvalue(sem, &value);
	return value;
}

DG_EXPORT int sem_getvalue(sem_t *sem, int *value)
{
	struct dg_sem *s = (struct dg_sem *)sem;

	if (!dg_sync_ours)
		return dg_real.sem_getvalue(sem, value);
	if (s->shared)
		*value = DG_REAL_EVENT(DG_EV_SEM, sem, 0, DG_SITE(), dg_sem_real_value(sem));
	else if (dg_me)
		*value = (int)dg_engine(DG_OP_SEM, (long)s, (long)DG_SITE(), DG_SYNC_GET, 0, 0);
	else
		*value = (int)__atomic_load_n(&s->value, __ATOMIC_RELAXED);
	return 0;
}

/* ---- barriers ---- */

DG_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct dg_barrier_wait w = { (struct dg_barrier *)barrier, DG_SITE(), 0, 0 };

	if (!dg_sync_ours || !dg_me)
		return dg_real.pthread_barrier_wait(barrier);
	if (w.barrier->shared)
		return DG_REAL_EVENT(DG_EV_BARRIER, barrier, sizeof(*w.barrier), w.site, dg_real.pthread_barrier_wait(barrier));
	return (int)dg_engine(DG_OP_BARRIER, (long)&w, 0, 0, 0, 0);
}

DG_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	if (!dg_sync_ours || ((struct dg_barrier *)barrier)->shared)
		return dg_real.pthread_barrier_destroy(barrier);
	return 0;
}

/* ---- once ---- */

struct dg_once_run {
	uint32_t *word;
	struct dg_once_run *outer;
};

static __thread struct dg_once_run *dg_once_runs __attribute__((tls_model("initial-exec")));

/* The initialiser threw, or its thread was cancelled: another may do it. */
int dg_once_personality(int version, int actions, uint64_t class, void *exception, void *context)
{
	struct dg_once_run *run = dg_once_runs;

	(void)version, (void)class, (void)exception, (void)context;
	if (!(actions & DG_UNWIND_CLEANUP) || !run)
		return DG_UNWIND_GOES_ON;
	dg_once_runs = run->outer;
	__atomic_store_n(run->word, 0, __ATOMIC_SEQ_CST);
	dg_wake(run->word, INT_MAX);
	return DG_UNWIND_GOES_ON;
}

static bool dg_once_unknown(uint32_t *word)
{
	uint32_t seen, runs = DG_ONCE_RUNS | DG_SYNC_TABLE->fork_generation;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != DG_ONCE_DONE) {
		if (seen != runs &&
		    __atomic_compare_exchange_n(word, &seen, runs, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		dg_sys0(SYS_sched_yield);
	}
	return false;
}

static void dg_once_initialise(uint32_t *word, void (*initialise)(void))
{
	struct dg_once_run run = { word, dg_once_runs };

	dg_once_runs = &run;
	dg_run_once(initialise);
	dg_once_runs = run.outer;
	__atomic_store_n(word, DG_ONCE_DONE, __ATOMIC_SEQ_CST);
	dg_wake(word, INT_MAX);
}

DG_EXPORT int pthread_once(pthread_once_t *control, void (*initialise)(void))
{
	uint32_t *word = (uint32_t *)control;
	bool mine;

	/* glibc's dlsym before 2.34 comes here while dg_real is looked up by it, and again
	 * out of its initialiser, which creates a key. There is one thread then. */
	if (!dg_sync_ours && !dg_real.pthread_once) {
		bool first = *word != DG_ONCE_DONE;

		*word = DG_ONCE_DONE;
		if (first)
			initialise();
		return 0;
	}
	if (!dg_sync_ours)
		return dg_real.pthread_once(control, initialise);
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != DG_ONCE_DONE) {
		mine = dg_me ? dg_engine(DG_OP_ONCE, (long)word, (long)DG_SITE(), 0, 0, 0) : dg_once_unknown(word);
		if (mine)
			dg_once_initialise(word, initialise);
	}
	dg_scrub();
	return 0;
}

DG_ALSO(pthread_once);

static bool dg_guard_unknown(uint32_t *word)
{
	uint32_t seen;

	while (!((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) & DG_GUARD_DONE)) {
		if (!seen && __atomic_compare_exchange_n(word, &seen, DG_GUARD_RUNS, false, __ATOMIC_ACQUIRE,
							 __ATOMIC_RELAXED))
			return true;
		dg_sys0(SYS_sched_yield);
	}
	return false;
}

int __cxa_guard_acquire(uint64_t *guard);
void __cxa_guard_release(uint64_t *guard);
void __cxa_guard_abort(uint64_t *guard);

DG_EXPORT int __cxa_guard_acquire(uint64_t *guard)
{
	uint32_t *word = (uint32_t *)guard;
	int mine = 0;

	if (!dg_sync_ours)
		return dg_real.guard_acquire(guard);
	if (!(__atomic_load_n(word, __ATOMIC_ACQUIRE) & DG_GUARD_DONE))
		mine = dg_me ? (int)dg_engine(DG_OP_GUARD, (long)word, (long)DG_SITE(), 0, 0, 0) : dg_guard_unknown(word);
	dg_scrub();
	return mine;
}

static void dg_guard_leave(uint64_t *guard, uint32_t value)
{
	uint32_t *word = (uint32_t *)guard;

	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	dg_wake(word, INT_MAX);
}

DG_EXPORT void __cxa_guard_release(uint64_t *guard)
{
	if (!dg_sync_ours)
		dg_real.guard_release(guard);
	else
		dg_guard_leave(guard, DG_GUARD_DONE);
}

DG_EXPORT void __cxa_guard_abort(uint64_t *guard)
{
	if (!dg_sync_ours)
		dg_real.guard_abort(guard);
	else
		dg_guard_leave(guard, 0);
}
