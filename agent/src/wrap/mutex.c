/* Mutexes. A normal one that its last owner takes again costs no event: it is
 * counted (dg_rthread.budget). The code is the same in a recording and in a
 * replay, where the budget is what the log says was taken so before the thread's
 * next event; the one after finds none left and enters the engine. */
#include "agent.h"
#include "engine/sync.h"

#include <pthread.h>

/* Numbers in the assembly below. */
_Static_assert(offsetof(struct dg_mutex, owner) == 8, "__owner");
_Static_assert(offsetof(struct dg_mutex, users) == 12, "__nusers");
_Static_assert(offsetof(struct dg_mutex, kind) == 16, "__kind");
_Static_assert(offsetof(struct dg_mutex, last) == 24, "__list");
_Static_assert(offsetof(struct dg_rthread, budget) == 0, "budget");
_Static_assert(offsetof(struct dg_rthread, index) == 8, "index");
_Static_assert(offsetof(struct dg_rthread, tid) == 12, "tid");
_Static_assert(DG_WAIT_COUNTS == 1 << 14 && DG_WAIT_SHIFT == 3 && offsetof(struct dg_sync_table, waiters) == 0, "slots");
_Static_assert(DG_OP_RELEASED == 25, "of the way into the engine");
_Static_assert(DG_ENGINE_SYNC == 0x21a080000000, "DG_ENGINE_SYNC");

int dg_mutex_lock_other(struct dg_mutex *m) DG_HIDDEN;
int dg_mutex_unlock_other(struct dg_mutex *m) DG_HIDDEN;
int dg_mutex_lock_slow(struct dg_mutex *m, uint64_t site) DG_HIDDEN;
/* For types that have a count: the rest of pthread_mutex_lock. */
int dg_mutex_lock_plain(struct dg_mutex *m, uint64_t site) DG_HIDDEN;
/* Wakes so many who sleep on the word, if any; returns 0. The word is not read. */
int dg_wake(const void *word, int most) DG_HIDDEN;

/* Where threads meet, whether the fast path is taken depends on time. So the
 * registers that the slow path finds, and those that the program finds, are the
 * same whichever way it went. 512 is PTHREAD_MUTEX_NO_ELISION_NP, of no meaning
 * here; another kind than 0 is not for this path. */
__asm__(
	".text\n"
	"	.globl	pthread_mutex_lock, dg_mutex_lock_plain\n"
	"	.hidden	dg_mutex_lock_plain\n"
	"	.type	pthread_mutex_lock, @function\n"
	"	.type	dg_mutex_lock_plain, @function\n"
	"	.balign	64\n"
	"pthread_mutex_lock:\n"
	"	.cfi_startproc\n"
	"	testl	$~512, 16(%rdi)\n"
	"	jne	dg_mutex_lock_other\n"
	"	movq	dg_me@gottpoff(%rip), %rdx\n"
	"	movq	%fs:(%rdx), %rdx\n"
	"	testq	%rdx, %rdx\n"
	"	je	dg_mutex_lock_other\n"
	"	movq	(%rsp), %rsi\n"
	".Llock:\n"
	"	movl	8(%rdx), %r8d\n"
	"	xorl	%eax, %eax\n"
	"	cmpl	%r8d, 24(%rdi)\n"
	"	jne	.Llock_slow\n"
	"	movl	$1, %ecx\n"
	"	lock cmpxchgl	%ecx, (%rdi)\n"
	"	jne	.Llock_slow\n"
	"	cmpl	%r8d, 24(%rdi)\n"
	"	jne	.Lgives_up\n"
	"	subq	$1, (%rdx)\n"
	"	jb	.Lgives_up\n"
	"	movl	12(%rdx), %ecx\n"
	"	movl	%ecx, 8(%rdi)\n"
	"	addl	$1, 12(%rdi)\n"
	"	ret\n"
	/* Last taken by another thread meanwhile, or no budget. */
	".Lgives_up:\n"
	"	xorl	%eax, %eax\n"
	"	xchgl	%eax, (%rdi)\n"
	".Llock_slow:\n"
	"	xorl	%ecx, %ecx\n"
	"	xorl	%eax, %eax\n"
	"	jmp	dg_mutex_lock_slow\n"
	"	.cfi_endproc\n"
	"	.size	pthread_mutex_lock, .-pthread_mutex_lock\n"
	"dg_mutex_lock_plain:\n"
	"	.cfi_startproc\n"
	"	movq	dg_me@gottpoff(%rip), %rdx\n"
	"	movq	%fs:(%rdx), %rdx\n"
	"	jmp	.Llock\n"
	"	.cfi_endproc\n"
	"	.size	dg_mutex_lock_plain, .-dg_mutex_lock_plain\n"
	"\n"
	"	.globl	pthread_mutex_unlock, dg_wake\n"
	"	.hidden	dg_wake\n"
	"	.type	pthread_mutex_unlock, @function\n"
	"	.type	dg_wake, @function\n"
	"	.balign	64\n"
	"pthread_mutex_unlock:\n"
	"	.cfi_startproc\n"
	"	testl	$~512, 16(%rdi)\n"
	"	jne	dg_mutex_unlock_other\n"
	"	movq	dg_me@gottpoff(%rip), %rdx\n"
	"	movq	%fs:(%rdx), %rdx\n"
	"	testq	%rdx, %rdx\n"
	"	je	dg_mutex_unlock_other\n"
	"	movl	12(%rdx), %ecx\n"
	"	cmpl	%ecx, 8(%rdi)\n"
	"	jne	dg_mutex_unlock_other\n"
	"	movl	$0, 8(%rdi)\n"
	"	subl	$1, 12(%rdi)\n"
	"	movl	$1, %r9d\n"
	"	xorl	%eax, %eax\n"
	"	xchgl	%eax, (%rdi)\n"
	".Lwake:\n"
	"	movl	%edi, %ecx\n"
	"	movabsq	$0x21a080000000, %r8\n"
	"	shrl	$3, %ecx\n"
	"	andl	$0x3fff, %ecx\n"
	"	leaq	(%r8, %rcx, 4), %r8\n"
	"	xorl	%ecx, %ecx\n"
	"	xorl	%edx, %edx\n"
	"	xorl	%esi, %esi\n"
	"	xorl	%r11d, %r11d\n"
	"	xorl	%eax, %eax\n"
	"	cmpl	$0, (%r8)\n"
	"	jne	.Lwake_any\n"
	".Lwoken:\n"
	"	ret\n"
	".Lwake_any:\n"
	"	cmpl	$0, dg_wakes_here(%rip)\n"
	"	jne	.Lreleased\n"
	"	movl	$202, %eax\n" /* futex */
	"	movl	$129, %esi\n" /* FUTEX_WAKE_PRIVATE */
	"	movl	%r9d, %edx\n"
	"	syscall\n"
	"	testl	%eax, %eax\n"
	"	jle	dg_wake_took\n"
	"	lock subl	%eax, (%r8)\n"
	"dg_wake_took:\n"
	"	xorl	%ecx, %ecx\n"
	"	xorl	%edx, %edx\n"
	"	xorl	%esi, %esi\n"
	"	xorl	%r11d, %r11d\n"
	"	xorl	%eax, %eax\n"
	"	jmp	.Lwoken\n"
	/* The engine resumes at dg_wake_took. */
	".Lreleased:\n"
	"	movq	%rdi, %rsi\n"
	"	movl	$25, %edi\n"
	"	jmp	dg_engine\n"
	"	.cfi_endproc\n"
	"	.size	pthread_mutex_unlock, .-pthread_mutex_unlock\n"
	"dg_wake:\n"
	"	.cfi_startproc\n"
	"	movl	%esi, %r9d\n"
	"	jmp	.Lwake\n"
	"	.cfi_endproc\n"
	"	.size	dg_wake, .-dg_wake\n"
	"	.globl	dg_wake_took\n"
	"	.hidden	dg_wake_took\n");

DG_ALSO(pthread_mutex_lock);
DG_ALSO(pthread_mutex_unlock);

int dg_mutex_lock_slow(struct dg_mutex *m, uint64_t site)
{
	int result = (int)dg_engine(DG_OP_MUTEX_LOCK, (long)m, (long)site, DG_SYNC_LOCK, 0, 0);

	if (!result)
		m->users++;
	return result;
}

/* Of the program's thread, as the variable has it. */
static uint32_t dg_sync_tid(void)
{
	return dg_me ? dg_me->tid : dg_tid();
}

static bool dg_mutex_counts(const struct dg_mutex *m)
{
	return (m->kind & DG_MUTEX_TYPE) == DG_MUTEX_RECURSIVE;
}

static bool dg_mutex_checks(const struct dg_mutex *m)
{
	return (m->kind & DG_MUTEX_TYPE) == DG_MUTEX_ERRORCHECK;
}

static bool dg_mutex_mine(const struct dg_mutex *m)
{
	return __atomic_load_n(&m->owner, __ATOMIC_RELAXED) == dg_sync_tid();
}

static int dg_mutex_once_more(struct dg_mutex *m)
{
	if (m->count + 1 == 0)
		return EAGAIN;
	m->count++;
	return 0;
}

/* ---- glibc's own: robust ones, with priorities, shared between processes ---- */

/* A replay: the lock was taken, whatever the word says, which the thread that died with
 * it, or another process, would have changed. */
static void dg_mutex_real_had(struct dg_mutex *m, int result)
{
	const uint32_t protect = 64;

	if (!(dg_mutex_counts(m) && dg_mutex_mine(m)) && !(m->kind & protect))
		m->lock = result == EOWNERDEAD ? FUTEX_OWNER_DIED : 0;
	dg_real.pthread_mutex_trylock((pthread_mutex_t *)m);
}

static int dg_mutex_real_lock(struct dg_mutex *m, enum dg_sync how, const struct dg_until *until)
{
	pthread_mutex_t *mutex = (pthread_mutex_t *)m;

	if (how == DG_SYNC_TRY)
		return dg_real.pthread_mutex_trylock(mutex);
	if (until)
		return dg_real.pthread_mutex_clocklock(mutex, (clockid_t)until->clock, &until->at);
	return dg_real.pthread_mutex_lock(mutex);
}

static int dg_mutex_real(struct dg_mutex *m, uint64_t site, enum dg_sync how, const struct dg_until *until)
{
	int result = 0;

	if (!dg_replays())
		result = DG_WITHIN_REAL(dg_mutex_real_lock(m, how, until));
	if (!dg_me)
		return result;
	result = (int)dg_engine(DG_OP_REAL, DG_EV_MUTEX, (long)m, (long)site, result, 0);
	if (dg_replays() && (!result || result == EOWNERDEAD))
		dg_mutex_real_had(m, result);
	return result;
}

/* ---- every kind ---- */

static int dg_mutex_lock_unknown(struct dg_mutex *m, enum dg_sync how, const struct dg_until *until)
{
	int result = how == DG_SYNC_TRY ? dg_mutex_try(m) : dg_acquire(dg_mutex_attempt, m, dg_tid(), until);

	if (!result)
		dg_mutex_own(m, dg_tid(), 0);
	return result;
}

static int dg_mutex_lock_as(struct dg_mutex *m, uint64_t site, enum dg_sync how, const struct dg_until *until)
{
	int result;

	if (dg_mutex_is_real(m))
		return dg_mutex_real(m, site, how, until);
	if (dg_mutex_counts(m) && dg_mutex_mine(m))
		return dg_mutex_once_more(m);
	if (dg_mutex_checks(m) && how != DG_SYNC_TRY && dg_mutex_mine(m))
		return EDEADLK;
	if (dg_me && how == DG_SYNC_LOCK) {
		result = dg_mutex_lock_plain(m, site);
		if (!result && dg_mutex_counts(m))
			m->count = 1;
		return result;
	}
	if (dg_me)
		result = (int)dg_engine(DG_OP_MUTEX_LOCK, (long)m, (long)site, how, (long)until, 0);
	else
		result = dg_mutex_lock_unknown(m, how, until);
	if (!result)
		m->users++;
	return result;
}

int dg_mutex_lock_other(struct dg_mutex *m)
{
	if (!dg_sync_ours)
		return dg_real.pthread_mutex_lock((pthread_mutex_t *)m);
	return dg_mutex_lock_as(m, DG_SITE(), DG_SYNC_LOCK, NULL);
}

DG_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (!dg_sync_ours)
		return dg_real.pthread_mutex_trylock(mutex);
	return dg_mutex_lock_as((struct dg_mutex *)mutex, DG_SITE(), DG_SYNC_TRY, NULL);
}

DG_ALSO(pthread_mutex_trylock);

DG_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at)
{
	struct dg_until until;

	if (!dg_sync_ours)
		return dg_real.pthread_mutex_clocklock(mutex, clock, at);
	if (!dg_until_set(&until, clock, at))
		return EINVAL;
	return dg_mutex_lock_as((struct dg_mutex *)mutex, DG_SITE(), DG_SYNC_TIMED, &until);
}

DG_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *at)
{
	struct dg_until until;

	if (!dg_sync_ours)
		return dg_real.pthread_mutex_timedlock(mutex, at);
	dg_until_set(&until, CLOCK_REALTIME, at);
	return dg_mutex_lock_as((struct dg_mutex *)mutex, DG_SITE(), DG_SYNC_TIMED, &until);
}

static int dg_mutex_unlock_kind(struct dg_mutex *m)
{
	/* In a replay no thread waits, so none is woken. */
	if (dg_mutex_is_real(m))
		return DG_WITHIN_REAL(dg_real.pthread_mutex_unlock((pthread_mutex_t *)m));
	if ((dg_mutex_counts(m) || dg_mutex_checks(m)) && !dg_mutex_mine(m))
		return EPERM;
	if (dg_mutex_counts(m) && --m->count)
		return 0;
	/* Undone by a thread that did not take it: without a fast path from now on. */
	if (!dg_mutex_mine(m))
		m->last = 0;
	m->owner = 0;
	m->users--;
	__atomic_exchange_n(&m->lock, 0, __ATOMIC_SEQ_CST);
	return dg_wake(&m->lock, 1);
}

int dg_mutex_unlock_other(struct dg_mutex *m)
{
	if (!dg_sync_ours)
		return dg_real.pthread_mutex_unlock((pthread_mutex_t *)m);
	return dg_mutex_unlock_kind(m);
}
