// ENDS: SIGABRT
// EVENTS: spin 1000
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, TURNS = 3000 };

static pthread_spinlock_t lock, shared;
static long counter, missed;

static void *work(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_spinlock_t *l = i % 16 ? &lock : &shared;

		if (i % 3 == 0 && pthread_spin_trylock(l) == EBUSY) {
			__atomic_add_fetch(&missed, 1, __ATOMIC_RELAXED);
			pthread_spin_lock(l);
		} else if (i % 3) {
			CHECK(!pthread_spin_lock(l));
		}
		if (l == &lock) {
			counter++;
			came((uint64_t)arg);
		}
		CHECK(!pthread_spin_unlock(l));
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	CHECK(!pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE));
	CHECK(!pthread_spin_init(&shared, PTHREAD_PROCESS_SHARED));
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(counter == THREADS * (TURNS - (TURNS + 15) / 16));
	CHECK(!pthread_spin_destroy(&lock));
	finish("spin");
}
