/* libc's own functions, which the wrappers of synchronisation replace: for a process
 * that is not recorded, and for variables that are glibc's: shared between
 * processes, robust, with priorities. */
#include "agent.h"
#include "engine/sync.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#define DG_REAL_LIST(X)                                                                                                \
	X(pthread_mutex_lock) X(pthread_mutex_trylock) X(pthread_mutex_timedlock) X(pthread_mutex_clocklock)           \
	X(pthread_mutex_unlock) X(pthread_rwlock_rdlock) X(pthread_rwlock_tryrdlock) X(pthread_rwlock_timedrdlock)     \
	X(pthread_rwlock_clockrdlock) X(pthread_rwlock_wrlock) X(pthread_rwlock_trywrlock)                             \
	X(pthread_rwlock_timedwrlock) X(pthread_rwlock_clockwrlock) X(pthread_rwlock_unlock) X(pthread_spin_init)      \
	X(pthread_spin_lock) X(pthread_spin_trylock) X(pthread_spin_unlock) X(pthread_cond_wait)                       \
	X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast)           \
	X(pthread_cond_destroy) X(sem_wait) X(sem_trywait) X(sem_timedwait) X(sem_clockwait) X(sem_post)               \
	X(sem_getvalue) X(pthread_barrier_wait) X(pthread_barrier_destroy) X(pthread_once)

static struct {
#define DG_REAL_FIELD(name) __typeof__(&name) name;
	DG_REAL_LIST(DG_REAL_FIELD)
	int (*guard_acquire)(uint64_t *);
	void (*guard_release)(uint64_t *);
	void (*guard_abort)(uint64_t *);
} dg_real;

/* The first constructor after the engine's. Of what these stand for only pthread_once
 * is called earlier: what ld.so itself needs it looks up in libc alone. */
__attribute__((constructor(102))) static void dg_real_resolve(void)
{
#define DG_REAL_RESOLVE(name) dg_real.name = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
	DG_REAL_LIST(DG_REAL_RESOLVE)
	/* libstdc++'s, or whatever else the program has for them; NULL in C. */
	dg_real.guard_acquire = (int (*)(uint64_t *))dlsym(RTLD_NEXT, "__cxa_guard_acquire");
	dg_real.guard_release = (void (*)(uint64_t *))dlsym(RTLD_NEXT, "__cxa_guard_release");
	dg_real.guard_abort = (void (*)(uint64_t *))dlsym(RTLD_NEXT, "__cxa_guard_abort");
}

/* The caller of the exported function: the site of its events. */
#define DG_SITE() ((uint64_t)__builtin_return_address(0))

/* glibc's second name of a function, with two underscores before it, which older
 * programs were linked with. */
#define DG_ALSO(name) __asm__(".globl __" #name "\n.set __" #name ", " #name "\n")

static inline bool dg_replays(void)
{
	return dg_mode == DG_MODE_REPLAY;
}

/* Values in registers after a path that a replay may not take. */
static inline void dg_scrub(void)
{
	__asm__ volatile("xorl %%ecx, %%ecx; xorl %%edx, %%edx; xorl %%esi, %%esi; xorl %%edi, %%edi; xorl %%r8d, %%r8d;"
			 "xorl %%r9d, %%r9d; xorl %%r10d, %%r10d; xorl %%r11d, %%r11d"
			 :
			 :
			 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}

/* False: not a clock to wait by. */
static inline bool dg_until_set(struct dg_until *u, clockid_t clock, const struct timespec *at)
{
	*u = (struct dg_until){ .at = *at, .clock = clock };
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

/* A thread that the engine does not know sleeps on its own stack; its signals'
 * handlers run as they come. */
static long dg_sleep(const void *word, uint32_t expected, const struct dg_until *until)
{
	uint64_t args[6];

	if (!dg_futex_wait_args(args, word, expected, until))
		return -ETIMEDOUT;
	return dg_sys(SYS_futex, (long)args[0], (long)args[1], (long)args[2], (long)args[3], 0, (long)args[5]);
}

static int dg_acquire_unknown(dg_attempt *attempt, void *variable, const struct dg_until *until)
{
	int result;

	do
		result = dg_acquire(attempt, variable, dg_tid(), until);
	while (result == EINTR);
	return result;
}

/* A call of the real function that is an event, but for a replay, which takes
 * the result from there, and so many bytes of the object: call is not evaluated
 * then. */
#define DG_REAL_EVENT(kind, object, bytes, site, call)                                                                        \
	({                                                                                                             \
		int dg_result = 0;                                                                                     \
		if (!dg_replays())                                                                                     \
			dg_result = DG_WITHIN_REAL(call);                                                              \
		if (dg_me)                                                                                             \
			dg_result = (int)dg_engine(DG_OP_REAL, (kind), (long)(object), (long)(site), dg_result,        \
						   (bytes));                                                           \
		dg_result;                                                                                             \
	})
