// Two threads add to a counter without a lock, and some additions are lost.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 300 };
static pthread_barrier_t start;
static volatile long total;

static void *adds(void *argument)
{
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++)
		total += 3; /* BUG */
	return argument;
}

int main(void)
{
	pthread_t threads[2];
	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, adds, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (total != 2 * 3 * ROUNDS)
		abort();
	return 0;
}
