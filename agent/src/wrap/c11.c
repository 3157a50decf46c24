/* C11's mutexes and condition variables, which are POSIX's in glibc; its own
 * functions call others inside libc, which cannot be interposed. */
#include "agent.h"
#include "engine/sync.h"

#include <pthread.h>
#include <threads.h>

static int dg_thrd(int error)
{
	switch (error) {
	case 0:
		return thrd_success;
	case ENOMEM:
		return thrd_nomem;
	case ETIMEDOUT:
		return thrd_timedout;
	case EBUSY:
		return thrd_busy;
	default:
		return thrd_error;
	}
}

DG_EXPORT int mtx_lock(mtx_t *mutex)
{
	struct dg_mutex *m = (struct dg_mutex *)mutex;

	if (!dg_sync_ours)
		return dg_thrd(dg_real.pthread_mutex_lock((pthread_mutex_t *)mutex));
	return dg_thrd(dg_mutex_lock_as(m, DG_SITE(), DG_SYNC_LOCK, NULL));
}

DG_EXPORT int mtx_trylock(mtx_t *mutex)
{
	struct dg_mutex *m = (struct dg_mutex *)mutex;

	if (!dg_sync_ours)
		return dg_thrd(dg_real.pthread_mutex_trylock((pthread_mutex_t *)mutex));
	return dg_thrd(dg_mutex_lock_as(m, DG_SITE(), DG_SYNC_TRY, NULL));
}

DG_EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *at)
{
	struct dg_until until;

	dg_until_set(&until, CLOCK_REALTIME, at);
	if (!dg_sync_ours)
		return dg_thrd(dg_real.pthread_mutex_timedlock((pthread_mutex_t *)mutex, at));
	return dg_thrd(dg_mutex_lock_as((struct dg_mutex *)mutex, DG_SITE(), DG_SYNC_TIMED, &until));
}

DG_EXPORT int mtx_unlock(mtx_t *mutex)
{
	return dg_thrd(dg_mutex_unlock_other((struct dg_mutex *)mutex));
}

DG_EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
	struct dg_cond_wait w = { (struct dg_cond *)cond, (struct dg_mutex *)mutex, DG_SITE(), NULL, 0, 0, 0, 0 };

	return dg_thrd(dg_cond_wait(&w));
}

DG_EXPORT int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *at)
{
	return dg_thrd(dg_cond_wait_until((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, DG_SITE(), CLOCK_REALTIME, at));
}

DG_EXPORT int cnd_signal(cnd_t *cond)
{
	return dg_thrd(pthread_cond_signal((pthread_cond_t *)cond));
}

DG_EXPORT int cnd_broadcast(cnd_t *cond)
{
	return dg_thrd(pthread_cond_broadcast((pthread_cond_t *)cond));
}

DG_EXPORT void cnd_destroy(cnd_t *cond)
{
	pthread_cond_destroy((pthread_cond_t *)cond);
}

DG_EXPORT void call_once(once_flag *flag, void (*initialise)(void))
{
	pthread_once((pthread_once_t *)flag, initialise);
}
