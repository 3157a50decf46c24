// All that threads share is ordered: by a mutex, by an atomic counter that says whose slot is whose, and by join.
// ENDS: SIGABRT
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 3, ROUNDS = 400 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long shared[8], own[THREADS * ROUNDS], sum;
static atomic_ulong count;

static void *work(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		unsigned long n = atomic_fetch_add(&count, 1);

		own[n] = (unsigned long)arg;
		pthread_mutex_lock(&mutex);
		shared[n % 8] = shared[(n + 1) % 8] * 3 + own[n];
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS * ROUNDS; i++)
		sum = sum * 7 + own[i];
	abort();
}
