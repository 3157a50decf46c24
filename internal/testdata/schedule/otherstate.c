// Two threads store two words in opposite orders, with no event between: a replay that lets one thread
// run after the other fails at the same place with other values.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

static volatile int early, late;
static pthread_barrier_t start;

static void compute(void)
{
	for (volatile int i = 0; i < 20 * 1000 * 1000; i++)
		;
}

static void *first(void *argument)
{
	pthread_barrier_wait(&start);
	early = 1;
	compute();
	late = 1;
	return argument;
}

static void *second(void *argument)
{
	pthread_barrier_wait(&start);
	late = 2;
	compute();
	early = 2;
	return argument;
}

int main(void)
{
	pthread_t threads[2];
	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, first, NULL);
	pthread_create(&threads[1], NULL, second, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	abort(); /* whatever the order was */
}
