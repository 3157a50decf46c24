// Mutexes that stay glibc's: robust ones whose owner dies, with inheritance of
// priorities, shared between processes; a condition variable with each.
// ENDS: SIGABRT
// EVENTS: mutex 1800
// EVENTS: cond 1
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 3, TURNS = 300 };

static pthread_mutex_t robust, inherits, shared;
static pthread_cond_t cond, shared_cond;
static long counter, dead;
static int turn, turn2, told;
static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;

static void *die(void *arg)
{
	(void)arg;
	CHECK(!pthread_mutex_lock(&robust));
	return NULL;
}

static void lock_robust(void)
{
	int r = pthread_mutex_lock(&robust);

	if (r == EOWNERDEAD) {
		dead++;
		CHECK(!pthread_mutex_consistent(&robust));
		r = 0;
	}
	CHECK(!r);
}

static void *work(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < TURNS; i++) {
		lock_robust();
		counter++;
		came((uint64_t)me);
		CHECK(!pthread_mutex_unlock(&robust));
		CHECK(!pthread_mutex_lock(&inherits));
		CHECK(pthread_mutex_trylock(&inherits) == EBUSY);
		came_to(1, (uint64_t)me);
		CHECK(!pthread_mutex_unlock(&inherits));
	}
	CHECK(!pthread_mutex_lock(&shared));
	while (turn != me)
		pthread_cond_wait(&shared_cond, &shared);
	turn++;
	pthread_cond_broadcast(&shared_cond);
	CHECK(!pthread_mutex_unlock(&shared));
	lock_robust();
	while (turn2 != me)
		pthread_cond_wait(&cond, &robust);
	turn2++;
	pthread_cond_broadcast(&cond);
	CHECK(!pthread_mutex_unlock(&robust));
	return NULL;
}

static void *tell(void *arg)
{
	pthread_mutex_lock(&mine);
	told = 1;
	pthread_cond_signal(&shared_cond);
	pthread_mutex_unlock(&mine);
	return arg;
}

int main(void)
{
	pthread_mutexattr_t a;
	pthread_condattr_t c;
	pthread_t t[THREADS];

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inherits, &a);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared, &a);
	pthread_condattr_init(&c);
	pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&shared_cond, &c);
	pthread_cond_init(&cond, NULL);
	pthread_create(&t[0], NULL, die, NULL);
	pthread_join(t[0], NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	// A shared variable with a mutex of this process alone.
	pthread_mutex_lock(&mine);
	pthread_create(&t[0], NULL, tell, NULL);
	while (!told)
		CHECK(!pthread_cond_wait(&shared_cond, &mine));
	CHECK(pthread_cond_timedwait(&shared_cond, &mine, &(struct timespec){ 1, 0 }) == ETIMEDOUT);
	pthread_mutex_unlock(&mine);
	pthread_join(t[0], NULL);
	CHECK(!pthread_cond_destroy(&cond));
	CHECK(dead == 1 && counter == THREADS * TURNS && turn == THREADS && turn2 == THREADS);
	finish("real");
}
