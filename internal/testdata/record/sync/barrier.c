// ENDS: SIGABRT
// EVENTS: barrier 2400
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300 };

static pthread_barrier_t barrier;
static long column[THREADS], last[THREADS];

static void *work(void *arg)
{
	long me = (long)arg;
	int r;

	for (int i = 0; i < ROUNDS; i++) {
		column[me] = i;
		r = pthread_barrier_wait(&barrier);
		CHECK(!r || r == PTHREAD_BARRIER_SERIAL_THREAD);
		if (r) {
			last[me]++;
			came((uint64_t)me);
		}
		for (int k = 0; k < THREADS; k++)
			CHECK(column[k] == i);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	long sum = 0;

	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += last[i];
	}
	CHECK(sum == ROUNDS);
	CHECK(!pthread_barrier_destroy(&barrier));
	finish("barrier");
}
