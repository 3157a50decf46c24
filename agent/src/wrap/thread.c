/* pthread_create and what goes with it: glibc's own, around which the engine
 * gives indices and stacks, and the order. */
#include "agent.h"
#include "engine/thread.h"
#include "wrap/next.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define DG_SIGCANCEL 32 /* glibc's, reserved by it */

DG_NEXT(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *));
DG_NEXT(int, pthread_join, (pthread_t, void **));
DG_NEXT(int, pthread_tryjoin_np, (pthread_t, void **));
DG_NEXT(int, pthread_timedjoin_np, (pthread_t, void **, const struct timespec *));
DG_NEXT(int, pthread_clockjoin_np, (pthread_t, void **, clockid_t, const struct timespec *));
DG_NEXT(int, pthread_detach, (pthread_t));
DG_NEXT(int, pthread_cancel, (pthread_t));
DG_NEXT(int, pthread_getattr_np, (pthread_t, pthread_attr_t *));
DG_NEXT(int, thrd_create, (thrd_t *, thrd_start_t, void *));
DG_NEXT(int, thrd_join, (thrd_t, int *));
DG_NEXT(int, thrd_detach, (thrd_t));

/* ---- the new thread ---- */

static struct dg_rthread *dg_thread_begins(void *index)
{
	struct dg_rthread *me = (struct dg_rthread *)(DG_ENGINE_THREADS + (uint64_t)index * DG_THREAD_SLOT);

	if (!dg_me)
		dg_me = me;
	dg_engine(DG_OP_THREAD_START, 0, 0, 0, 0, 0);
	/* dg_thread_end has something to order even if the thread allocates nothing. */
	if (dg_key_made)
		pthread_setspecific(dg_key, (void *)1);
	return me;
}

static void *dg_pthread_begins(void *index)
{
	struct dg_rthread *me = dg_thread_begins(index);

	return ((void *(*)(void *))me->start)((void *)me->argument);
}

static void *dg_c11_begins(void *index)
{
	struct dg_rthread *me = dg_thread_begins(index);

	return (void *)(uintptr_t)((thrd_start_t)me->start)((void *)me->argument);
}

/* ---- creation ---- */

/* What the program's attributes say; *own is a copy to be changed. */
static void dg_load_unwinder(void); /* wrap/load.c */

static void dg_creation_of(struct dg_creation *c, pthread_attr_t *own)
{
	void *low;
	size_t size, guard;
	int detached;

	pthread_attr_getdetachstate(own, &detached);
	pthread_attr_getguardsize(own, &guard);
	pthread_attr_getstack(own, &low, &size);
	/* glibc has the stack's end, NULL if none was set, and subtracts the size. */
	if ((uint64_t)low + size) {
		c->flags = DG_CREATE_OWN_STACK;
		c->own_low = (uint64_t)low;
	} else {
		pthread_attr_getstacksize(own, &size);
	}
	if (detached == PTHREAD_CREATE_DETACHED)
		c->flags |= DG_CREATE_DETACHED;
	c->size = size;
	c->guard = guard;
}

static void dg_creation_attr(const struct dg_creation *c, pthread_attr_t *own)
{
	if (c->flags & DG_CREATE_OWN_STACK)
		return;
	pthread_attr_setstack(own, (void *)c->stack_low, c->size);
	pthread_attr_setdetachstate(own, PTHREAD_CREATE_JOINABLE);
}

static int dg_create(pthread_t *to, const pthread_attr_t *attr, void *(*begins)(void *), uint64_t start, void *argument,
		     long site)
{
	struct dg_creation c = { .start = start, .argument = (uint64_t)argument };
	struct dg_ordered o = { .family = DG_FAMILY_OBJECTS, .site = site };
	bool ordered = dg_orders();
	pthread_attr_t own;
	int error;

	if (attr)
		own = *attr; /* what it points at stays the program's */
	else if ((error = pthread_getattr_default_np(&own)))
		return error;
	dg_load_unwinder();
	dg_creation_of(&c, &own);
	if (ordered) /* it needs ld.so's lock for TLS, which dlclose has while it unmaps */
		dg_order_enter(&o);
	error = (int)dg_engine(DG_OP_CREATE_BEGIN, (long)&c, site, 0, 0, 0);
	dg_within_real = 1; /* what libc does here depends on when the kernel says that a thread has ended */
	for (uint64_t i = 0; i < c.reaps; i++)
		DG_CALL(pthread_join)((pthread_t)c.reap_pointer[i], NULL);
	if (!error) {
		dg_creation_attr(&c, &own);
		error = DG_CALL(pthread_create)(to, &own, begins, (void *)c.index);
	}
	dg_within_real = 0;
	dg_engine(DG_OP_CREATE_END, (long)&c, error, site, error ? 0 : (long)*to, 0);
	if (ordered)
		dg_order_left(&o);
	if (!attr)
		pthread_attr_destroy(&own);
	return error;
}

DG_EXPORT int pthread_create(pthread_t *to, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	if (!dg_engaged())
		return DG_CALL(pthread_create)(to, attr, start, argument);
	return dg_create(to, attr, dg_pthread_begins, (uint64_t)start, argument, DG_CALLER());
}

/* ---- join ---- */

/* A cancellation point, if it may wait: with the type of cancellation that glibc
 * has in its own while it waits. */
static long dg_join_begin(pthread_t thread, uint64_t how, const struct timespec *until, long site)
{
	int type;
	long result;

	if (how == DG_JOIN_TRY)
		return dg_engine(DG_OP_JOIN_BEGIN, (long)thread, (long)how, (long)until, site, 0);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	result = dg_engine(DG_OP_JOIN_BEGIN, (long)thread, (long)how, (long)until, site, 0);
	pthread_setcanceltype(type, &type);
	return result;
}

static long dg_join(pthread_t thread, void **value, uint64_t how, const struct timespec *until, long site)
{
	long result = dg_join_begin(thread, how, until, site);

	if (result)
		return result;
	dg_engine(DG_OP_JOIN_END, (long)thread, 0, site, 0, 0);
	result = DG_CALL(pthread_join)(thread, value);
	dg_engine(DG_OP_JOIN_END, (long)thread, 1, site, 0, 0);
	return result;
}

DG_EXPORT int pthread_join(pthread_t thread, void **value)
{
	long result = dg_engaged() ? dg_join(thread, value, DG_JOIN_WAIT, NULL, DG_CALLER()) : DG_NOT_OURS;

	return result == DG_NOT_OURS ? DG_CALL(pthread_join)(thread, value) : (int)result;
}

DG_EXPORT int pthread_tryjoin_np(pthread_t thread, void **value)
{
	long result = dg_engaged() ? dg_join(thread, value, DG_JOIN_TRY, NULL, DG_CALLER()) : DG_NOT_OURS;

	return result == DG_NOT_OURS ? DG_CALL(pthread_tryjoin_np)(thread, value) : (int)result;
}

/* No time is for ever, as glibc has it. */
static long dg_join_until(pthread_t thread, void **value, clockid_t clock, const struct timespec *until, long site)
{
	uint64_t how = until ? DG_JOIN_TIMED | (uint64_t)clock << 8 : DG_JOIN_WAIT;

	if (!dg_engaged())
		return DG_NOT_OURS;
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	return dg_join(thread, value, how, until, site);
}

DG_EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	long result = dg_join_until(thread, value, CLOCK_REALTIME, until, DG_CALLER());

	return result == DG_NOT_OURS ? DG_CALL(pthread_timedjoin_np)(thread, value, until) : (int)result;
}

DG_EXPORT int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
	long result = dg_join_until(thread, value, clock, until, DG_CALLER());

	return result == DG_NOT_OURS ? DG_CALL(pthread_clockjoin_np)(thread, value, clock, until) : (int)result;
}

DG_EXPORT int pthread_detach(pthread_t thread)
{
	long result = dg_engaged() ? dg_engine(DG_OP_DETACH, (long)thread, DG_CALLER(), 0, 0, 0) : DG_NOT_OURS;

	return result == DG_NOT_OURS ? DG_CALL(pthread_detach)(thread) : (int)result;
}

/* ---- C11 ---- */

static int dg_thrd(int error); /* wrap/c11.c */

DG_EXPORT int thrd_create(thrd_t *to, thrd_start_t start, void *argument)
{
	if (!dg_engaged())
		return DG_CALL(thrd_create)(to, start, argument);
	return dg_thrd((int)dg_create(to, NULL, dg_c11_begins, (uint64_t)start, argument, DG_CALLER()));
}

DG_EXPORT int thrd_join(thrd_t thread, int *value)
{
	void *result = NULL;
	long error = dg_engaged() ? dg_join(thread, &result, DG_JOIN_WAIT, NULL, DG_CALLER()) : DG_NOT_OURS;

	if (error == DG_NOT_OURS)
		return DG_CALL(thrd_join)(thread, value);
	if (value)
		*value = (int)(uintptr_t)result;
	return dg_thrd((int)error);
}

DG_EXPORT int thrd_detach(thrd_t thread)
{
	long result = dg_engaged() ? dg_engine(DG_OP_DETACH, (long)thread, DG_CALLER(), 0, 0, 0) : DG_NOT_OURS;

	return result == DG_NOT_OURS ? DG_CALL(thrd_detach)(thread) : dg_thrd((int)result);
}

/* ---- cancellation ---- */

static void dg_cancelled(int signal)
{
	(void)signal;
	DG_CALL(pthread_cancel)(pthread_self());
}

/* glibc's handler believes that the thread allows it, for its pthread_cancel
 * looked. Its own restorer and flags go with ours. */
static void dg_cancel_handle(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} action;

	if (syscall(SYS_rt_sigaction, DG_SIGCANCEL, NULL, &action, sizeof(action.mask)))
		return;
	action.handler = (void *)(uintptr_t)dg_cancelled;
	syscall(SYS_rt_sigaction, DG_SIGCANCEL, &action, NULL, sizeof(action.mask));
}

/* glibc's pthread_cancel marks the thread's control block, which the thread
 * looks at whenever it likes; its handler of SIGCANCEL does the same, in the
 * thread. The handler is installed by the first call, whatever thread that is
 * about: so about one that is none. */
static void dg_cancel_prepare(void)
{
	static uint8_t nobody[DG_CONTROL_BLOCK * 2] __attribute__((aligned(64)));
	static bool prepared;

	dg_engine(DG_OP_ORDER_BEGIN, DG_SIGCANCEL, DG_FAMILY_CANCEL, DG_ORDER_WHOLE, 0, 0);
	if (!prepared) {
		prepared = true;
		*(uint32_t *)(nobody + dg_tid_field) = 1;
		DG_CALL(pthread_cancel)((pthread_t)nobody);
		dg_cancel_handle();
	}
	dg_engine(DG_OP_ORDER_END, DG_FAMILY_CANCEL, 0, 0, 0, 0);
}

DG_EXPORT int pthread_cancel(pthread_t thread)
{
	long result;

	if (!dg_engaged() || !dg_tid_field || thread == pthread_self())
		return DG_CALL(pthread_cancel)(thread);
	dg_cancel_prepare();
	result = dg_engine(DG_OP_CANCEL, (long)thread, DG_CALLER(), DG_SIGCANCEL, 0, 0);
	return result == DG_NOT_OURS ? DG_CALL(pthread_cancel)(thread) : (int)result;
}

/* ---- what a program may ask ---- */

/* For glibc the stack is the program's, has no guard, and it is not detached. */
DG_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	int error = DG_CALL(pthread_getattr_np)(thread, attr);
	struct dg_thread_facts facts;

	if (error || !dg_engaged() || !dg_thread_ask(thread, &facts))
		return error;
	pthread_attr_setguardsize(attr, facts.guard);
	if (facts.detached)
		pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	return 0;
}
