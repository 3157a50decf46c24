/* The super-heap's lock, and heap 0's: a word with the holder's tid. A signal
 * handler that finds its own thread to be the holder is refused instead of
 * waiting for itself. */
#include "agent.h"
#include "hot.h"
#include "syscall.h"

#include <linux/futex.h>

#define DG_LOCK_WAITERS 0x80000000u
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

static uint32_t dg_tid(void)
{
	if (DG_UNLIKELY(!dg_own_tid) && dg_tid_field)
		dg_own_tid = *dg_control_block(dg_tid_field);
	if (DG_UNLIKELY(!dg_own_tid))
		dg_own_tid = (uint32_t)dg_sys0(SYS_gettid);
	return dg_own_tid;
}

/* In the main thread. Two words of that value teach nothing. */
static void dg_tid_learn(void)
{
	uint32_t tid = (uint32_t)dg_sys0(SYS_gettid), found = 0, times = 0;

	for (uint32_t at = 0; at < DG_CONTROL_BLOCK; at += 4)
		if (*dg_control_block(at) == tid) {
			found = at;
			times++;
		}
	if (times == 1)
		dg_tid_field = found;
}

/* In a fork's child. */
static void dg_tid_renew(void)
{
	dg_own_tid = 0;
}

static DG_COLD bool dg_lock_wait(uint32_t *word, uint32_t me)
{
	uint32_t seen;
	int i;

	for (i = 0; i < DG_LOCK_SPINS; i++) {
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		if ((seen & ~DG_LOCK_WAITERS) == me)
			return false;
		if (!seen && __atomic_compare_exchange_n(word, &seen, me, false,
							 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	/* Whoever waited takes the lock with the bit: others may wait still. */
	for (;;) {
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
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

static bool dg_lock_word(uint32_t *word)
{
	uint32_t me = dg_tid(), free = 0;

	if (DG_LIKELY(__atomic_compare_exchange_n(word, &free, me, false, __ATOMIC_ACQUIRE,
						  __ATOMIC_RELAXED)))
		return true;
	return dg_lock_wait(word, me);
}

static void dg_unlock_word(uint32_t *word)
{
	uint32_t seen = __atomic_exchange_n(word, 0, __ATOMIC_RELEASE);

	if (DG_UNLIKELY(seen & DG_LOCK_WAITERS))
		dg_sys3(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

static bool dg_lock(void)
{
	return dg_lock_word(&dg_root->lock);
}

static void dg_unlock(void)
{
	dg_unlock_word(&dg_root->lock);
}

static bool dg_lock_heaps(void)
{
	if (!dg_lock_word(&dg_hot.shared->busy))
		return false;
	if (dg_lock())
		return true;
	dg_unlock_word(&dg_hot.shared->busy);
	return false;
}

static void dg_unlock_heaps(void)
{
	dg_unlock();
	dg_unlock_word(&dg_hot.shared->busy);
}
