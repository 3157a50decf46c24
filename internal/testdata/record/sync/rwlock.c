// ENDS: SIGABRT
// EVENTS: rwlock 20000
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { READERS = 3, WRITERS = 2, TURNS = 2000 };

static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t writers_first = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static long a, b, busy, seen[READERS];

static void *reader(void *arg)
{
	long me = (long)arg;

	for (int i = 0; i < TURNS; i++) {
		pthread_rwlock_t *l = i % 2 ? &plain : &writers_first;

		if (i % 5 || pthread_rwlock_tryrdlock(l))
			CHECK(!pthread_rwlock_rdlock(l));
		if (l == &plain) {
			CHECK(a == b);
			seen[me] += a;
		}
		CHECK(!pthread_rwlock_unlock(l));
	}
	return NULL;
}

static void *writer(void *arg)
{
	long me = (long)arg;
	struct timespec past = { 1, 0 };

	for (int i = 0; i < TURNS; i++) {
		pthread_rwlock_t *l = i % 2 ? &plain : &writers_first;

		if (i % 5 || pthread_rwlock_trywrlock(l))
			CHECK(!pthread_rwlock_wrlock(l));
		CHECK(pthread_rwlock_wrlock(l) == EDEADLK);
		CHECK(pthread_rwlock_rdlock(l) == EDEADLK);
		CHECK(pthread_rwlock_tryrdlock(l) == EBUSY);
		if (l == &plain) {
			a++;
			came((uint64_t)me);
			b++;
		}
		CHECK(!pthread_rwlock_unlock(l));
	}
	CHECK(!pthread_rwlock_rdlock(&plain));
	CHECK(pthread_rwlock_timedwrlock(&plain, &past) == ETIMEDOUT);
	CHECK(!pthread_rwlock_unlock(&plain));
	__atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(void)
{
	pthread_t t[READERS + WRITERS];

	for (long i = 0; i < READERS + WRITERS; i++)
		pthread_create(&t[i], NULL, i < READERS ? reader : writer, (void *)i);
	for (int i = 0; i < READERS + WRITERS; i++)
		pthread_join(t[i], NULL);
	CHECK(a == WRITERS * TURNS / 2 && a == b && busy == WRITERS);
	CHECK(!pthread_rwlock_destroy(&plain));
	finish("rwlock");
}
