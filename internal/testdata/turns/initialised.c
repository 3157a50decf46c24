// Threads that wait for initialisations by others, one after the other, and compute in between. The end of such a wait is an event where one
// thread runs at a time: without it, nothing in the log says that a thread ran from one wait to the next before another one's turn ended.
// The argument says how much they compute.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 40
#define THREADS 3

static pthread_once_t once[ROUNDS];
static volatile long shared, order;
static __thread int round_of;
static int much = 1000;

static void compute(int times)
{
	for (volatile int i = 0; i < times; i++)
		shared += i & 1;
}

static void initialise(void)
{
	compute(20 * much);
	order = order * 3 + round_of;
}

static void *run(void *number)
{
	for (int i = 0; i < ROUNDS; i++) {
		round_of = i;
		pthread_once(&once[i], initialise);
		order = order * 7 + (long)number;
		compute(2 * much * (int)(long)number);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	if (argc > 1)
		much = atoi(argv[1]);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", order);
	return 0;
}
