/* The agent's locks: words with the holder's tid. A signal handler may interrupt
 * the holder of any and return here. One that finds its own thread to be the
 * holder is refused. Otherwise it waits only for locks that come after all that
 * its thread holds, in the order of enum dg_level: so no two threads wait for
 * each other, whatever interrupts them where. Another lock that stays taken is
 * refused. */
#include "agent.h"
#include "heap/hot.h"
#include "syscall.h"
#include "tid.h"

#include <linux/futex.h>

#define DG_LOCK_WAITERS 0x80000000u
#define DG_LOCK_NOBODY 0x7fffffffu /* holder of a lock that is never released */
#define DG_LOCK_SPINS 64
#define DG_CONTROL_BLOCK 2048u /* bytes searched; struct pthread is longer in every glibc */

static __thread uint32_t dg_own_tid __attribute__((tls_model("initial-exec")));

/* Where glibc keeps a thread's id in its control block: a thread under a
 * seccomp filter that lets it allocate is not always allowed to ask for it. */
static uint32_t dg_tid_field;

static const uint32_t *dg_control_block(uint32_t at)
{
	return (const uint32_t *)((uintptr_t)__builtin_thread_pointer() + at);
}

/* Of a replay: the recorded ones. The engine has started, or there is none. */
static uint32_t dg_kernel_tid(void)
{
#ifdef DG_RECORD
	if (dg_me)
		return dg_me->tid;
#endif
	return (uint32_t)dg_sys0(SYS_gettid);
}

static uint32_t dg_pid(void)
{
#ifdef DG_RECORD
	if (dg_mode)
		return DG_CONTROL->pid;
#endif
	return (uint32_t)dg_sys0(SYS_getpid);
}

static uint32_t dg_tid(void)
{
	if (DG_UNLIKELY(!dg_own_tid) && dg_tid_field)
		dg_own_tid = *dg_control_block(dg_tid_field);
	if (DG_UNLIKELY(!dg_own_tid))
		dg_own_tid = dg_kernel_tid();
	return dg_own_tid;
}

/* In the main thread. */
static void dg_tid_learn(void)
{
	dg_tid_field = dg_tid_offset((uint64_t)dg_control_block(0), DG_CONTROL_BLOCK, dg_kernel_tid());
}

/* The words of the locks that are not in the layout. */
static uint32_t dg_words[DG_LEVELS];
/* A bit for each lock that this thread holds or is about to take. */
static __thread uint32_t dg_held __attribute__((tls_model("initial-exec")));

static uint32_t *dg_word_at_level(enum dg_level level)
{
	if (level == DG_LEVEL_SHARED)
		return &dg_hot.shared->busy;
	if (level == DG_LEVEL_SUPER)
		return &dg_root->lock;
	return &dg_words[level];
}

static bool dg_lock_spin(uint32_t *word, uint32_t me)
{
	uint32_t seen;

	for (int i = 0; i < DG_LOCK_SPINS; i++) {
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		if ((seen & ~DG_LOCK_WAITERS) == me || seen == DG_LOCK_NOBODY)
			return false;
		if (!seen && __atomic_compare_exchange_n(word, &seen, me, false, __ATOMIC_ACQUIRE,
							 __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

static DG_COLD bool dg_lock_wait(uint32_t *word, uint32_t me)
{
	uint32_t seen;

	/* Whoever waited takes the lock with the bit: others may wait still. */
	for (;;) {
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		if ((seen & ~DG_LOCK_WAITERS) == me || seen == DG_LOCK_NOBODY)
			return false;
		if (!seen) {
			if (__atomic_compare_exchange_n(word, &seen, me | DG_LOCK_WAITERS, false,
							__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
				return true;
			continue;
		}
		if (!(seen & DG_LOCK_WAITERS) &&
		    !__atomic_compare_exchange_n(word, &seen, seen | DG_LOCK_WAITERS, false,
						 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		dg_sys4(SYS_futex, word, FUTEX_WAIT_PRIVATE, (int)(seen | DG_LOCK_WAITERS), 0);
	}
}

#ifdef DG_RECORD
/* What they guard decides where objects lie, so their order is recorded; and that
 * of the sites, whose numbers are in words that the code of the heap leaves in
 * registers and on the stack. Of these there are many, and alone a thread has
 * them in its own order. The others guard what the program never sees. */
#define DG_ORDERED_LEVELS (1u << DG_LEVEL_CHECK | 1u << DG_LEVEL_SHARED | 1u << DG_LEVEL_SUPER)

static inline bool dg_is_ordered(enum dg_level level)
{
	uint32_t ordered = DG_ORDERED_LEVELS | (dg_many ? 1u << DG_LEVEL_SITES : 0);

	return ordered >> level & 1 && dg_mode && dg_me && !dg_me->raw;
}

/* In a replay one thread runs at a time: the holder must have its turn. */
static bool dg_lock_yield(const uint32_t *word, enum dg_level level)
{
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (dg_mode != DG_MODE_REPLAY || !dg_me || !seen || (seen & ~DG_LOCK_WAITERS) == dg_tid() ||
	    seen == DG_LOCK_NOBODY)
		return false;
	dg_engine(DG_OP_YIELD, level, 0, 0, 0, 0);
	return true;
}
#endif

static bool dg_hold_in_time(enum dg_level level, bool may_wait)
{
	uint32_t *word = dg_word_at_level(level);
	uint32_t me = dg_tid(), free = 0, before = dg_held, bit = 1u << level;

	/* First, so that a handler that comes in between knows. */
	dg_held = before | bit;
	DG_ORDER();
#ifdef DG_RECORD
	if (dg_is_ordered(level)) {
		if (dg_engine(DG_OP_HEAP, (long)word, me, level, may_wait && before < bit, 0))
			return true;
		dg_held = before;
		return false;
	}
	while (may_wait && before < bit && dg_lock_yield(word, level))
		;
#endif
	if (DG_LIKELY(__atomic_compare_exchange_n(word, &free, me, false, __ATOMIC_ACQUIRE,
						  __ATOMIC_RELAXED)) ||
	    dg_lock_spin(word, me) || (may_wait && before < bit && dg_lock_wait(word, me)))
		return true;
	dg_held = before;
	return false;
}

static bool dg_hold(enum dg_level level)
{
	return dg_hold_in_time(level, true);
}

static bool dg_try(enum dg_level level)
{
	return dg_hold_in_time(level, false);
}

#ifdef DG_RECORD
/* Whether there is a thread to be woken depends on time, and in a replay there
 * never is. What a function leaves in dead registers is the same
 * either way then: the program may be interrupted before it writes to them. */
#define DG_FORGET_REGISTERS()                                                                                          \
	__asm__ volatile("xorl %%eax, %%eax\n\txorl %%ecx, %%ecx\n\txorl %%edx, %%edx\n\txorl %%esi, %%esi\n\t"        \
			 "xorl %%edi, %%edi\n\txorl %%r8d, %%r8d\n\txorl %%r9d, %%r9d\n\txorl %%r10d, %%r10d\n\t"      \
			 "xorl %%r11d, %%r11d"                                                                         \
			 :                                                                                             \
			 :                                                                                             \
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc")
#else
#define DG_FORGET_REGISTERS() ((void)0)
#endif

static void dg_let_go(enum dg_level level)
{
	uint32_t *word = dg_word_at_level(level);
	uint32_t seen = __atomic_exchange_n(word, 0, __ATOMIC_RELEASE);

	DG_ORDER();
	dg_held &= ~(1u << level);
	if (DG_UNLIKELY(seen & DG_LOCK_WAITERS))
		dg_sys3(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
	DG_FORGET_REGISTERS();
}

/* Whether this call came in between while its thread had the super-heap's lock. */
static inline bool dg_interrupts(void)
{
	return dg_held >> DG_LEVEL_SUPER;
}

static bool dg_lock(void)
{
	return dg_hold(DG_LEVEL_SUPER);
}

static void dg_unlock(void)
{
	if (DG_UNLIKELY(__atomic_load_n(&dg_spare_lacks, __ATOMIC_RELAXED)))
		dg_spare_provide();
	dg_let_go(DG_LEVEL_SUPER);
}

/* Of a thread that forks: what it took for that, as bits, its tid, and how
 * often it is at it, as a handler may interrupt a fork with another. Not taken
 * is what a handler finds in the hands of the code that it interrupted. */
static __thread struct {
	uint32_t took, tid, depth;
} dg_fork __attribute__((tls_model("initial-exec")));

static void dg_lock_fork(void)
{
	if (dg_fork.depth++)
		return;
	dg_fork.took = 0;
	dg_fork.tid = dg_tid();
	for (uint32_t level = DG_LEVEL_SHARED; level < DG_LEVELS; level++)
		if (dg_hold(level))
			dg_fork.took |= 1u << level;
}

static void dg_unlock_fork(void)
{
	if (--dg_fork.depth)
		return;
	for (uint32_t level = DG_LEVELS; level-- > DG_LEVEL_SHARED;)
		if (dg_fork.took >> level & 1)
			dg_let_go(level);
}

/* In a fork's child. A lock of a thread that is no more is never given back,
 * and what it guards may be half done: so it is refused from now on. A check
 * leaves nothing half done. */
static void dg_inherit_locks(void)
{
	uint32_t *word, owner;

	dg_own_tid = 0;
	for (uint32_t level = 0; level < DG_LEVELS; level++) {
		word = dg_word_at_level(level);
		owner = *word & ~DG_LOCK_WAITERS;
		if (owner == dg_fork.tid)
			*word = dg_tid();
		else if (owner)
			*word = level == DG_LEVEL_CHECK ? 0 : DG_LOCK_NOBODY;
	}
	dg_fork.tid = dg_tid();
}
