// Three threads add to a counter; it fails if one of them was preempted between its read and its write.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS 3
#define TIMES 5

static long counter;
static atomic_long exact;

static void *add(void *argument)
{
	for (int i = 0; i < TIMES; i++) {
		counter++;
		atomic_fetch_add(&exact, 1);
	}
	return argument;
}

int main(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, add, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	if (exact != THREADS * TIMES)
		exit(1);
	if (counter != THREADS * TIMES)
		abort();
	return 0;
}
