// Four threads add to a counter without a lock, and some additions are lost.
// FLAGS: -O1
// ENDS: exit 1
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 1000 };
static pthread_barrier_t gate;
static volatile long counter;

static void *adds(void *argument)
{
	pthread_barrier_wait(&gate);
	for (int i = 0; i < ROUNDS; i++)
		counter++; /* BUG */
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&gate, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, adds, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", counter);
	return counter != THREADS * ROUNDS;
}
