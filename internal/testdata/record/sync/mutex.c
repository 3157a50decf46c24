// ENDS: SIGABRT
// EVENTS: mutex 1000
#include "check.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, TURNS = 5000 };

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own[THREADS];
static long counter, missed[THREADS], mine[THREADS];

static void *work(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&own[me]);
		mine[me]++;
		pthread_mutex_unlock(&own[me]);
		if (i % 7 == 0) {
			if (pthread_mutex_trylock(&shared)) {
				missed[me]++;
				pthread_mutex_lock(&shared);
			}
		} else {
			CHECK(!pthread_mutex_lock(&shared));
		}
		CHECK(pthread_mutex_trylock(&shared) == EBUSY);
		counter++;
		came((uint64_t)me);
		CHECK(!pthread_mutex_unlock(&shared));
		if (i % 512 == 0)
			sched_yield();
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_mutexattr_t normal;

	pthread_mutexattr_init(&normal);
	pthread_mutexattr_settype(&normal, PTHREAD_MUTEX_NORMAL);
	for (long i = 0; i < THREADS; i++)
		pthread_mutex_init(&own[i], i % 2 ? &normal : NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(counter == THREADS * TURNS);
	for (int i = 0; i < THREADS; i++) {
		CHECK(mine[i] == TURNS);
		CHECK(!pthread_mutex_destroy(&own[i]));
	}
	finish("mutex");
}
