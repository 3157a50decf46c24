// A ticket lock, with a list of its owners.
// ENDS: SIGABRT
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 3, TURNS = 1500 };

static atomic_uint next, serving;
static long list[THREADS * TURNS];
static int count;

static void *work(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		unsigned ticket = atomic_fetch_add(&next, 1);

		for (int rounds = 1; atomic_load_explicit(&serving, memory_order_acquire) != ticket; rounds++)
			if (rounds % 50 == 0)
				sched_yield();
		list[count++] = (long)arg;
		atomic_store_explicit(&serving, ticket + 1, memory_order_release);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	abort();
}
