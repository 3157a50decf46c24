// Recursive, error-checking and adaptive mutexes; timed ones.
// ENDS: SIGABRT
// EVENTS: mutex 1500
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 3, TURNS = 500 };

static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static long depth, timeouts;

static struct timespec soon(clockid_t clock, long ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ns;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

static void nest(long me, int n)
{
	CHECK(!pthread_mutex_lock(&recursive));
	CHECK(!pthread_mutex_trylock(&recursive));
	depth++;
	came((uint64_t)me);
	if (n)
		nest(me, n - 1);
	depth--;
	CHECK(!pthread_mutex_unlock(&recursive));
	CHECK(!pthread_mutex_unlock(&recursive));
}

static void *work(void *arg)
{
	long me = (long)arg;
	struct timespec t, bad = { 0, 2000000000 };

	for (int i = 0; i < TURNS; i++) {
		nest(me, 3);
		CHECK(pthread_mutex_unlock(&recursive) == EPERM);
		CHECK(!pthread_mutex_lock(&checking));
		CHECK(pthread_mutex_lock(&checking) == EDEADLK);
		CHECK(pthread_mutex_trylock(&checking) == EBUSY);
		came_to(1, (uint64_t)me);
		CHECK(!pthread_mutex_unlock(&checking));
		CHECK(pthread_mutex_unlock(&checking) == EPERM);
		CHECK(!pthread_mutex_lock(&adaptive));
		came_to(2, (uint64_t)me);
		CHECK(!pthread_mutex_unlock(&adaptive));
	}
	t = soon(CLOCK_REALTIME, 2000000);
	CHECK(pthread_mutex_timedlock(&held, &t) == ETIMEDOUT);
	t = soon(CLOCK_MONOTONIC, 2000000);
	CHECK(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
	CHECK(pthread_mutex_timedlock(&held, &bad) == EINVAL);
	t = soon(CLOCK_REALTIME, 500000000);
	CHECK(!pthread_mutex_timedlock(&adaptive, &t));
	timeouts += 2;
	came_to(2, (uint64_t)me);
	CHECK(!pthread_mutex_unlock(&adaptive));
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	pthread_mutex_lock(&held);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(!depth && timeouts == 2 * THREADS);
	finish("types");
}
