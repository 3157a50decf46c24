// A counter that is raised by two threads without a lock and without anything in
// between that a recording would have the order of.
// CAUSE kind=atomicity-violation variable=hits pattern=RWW
// FAILS signal=SIGABRT says="instead of"
// RUNS fail: 2000000
// RUNS pass: 1
// SEARCH: the two accesses have no event between them
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long hits;
static unsigned long rounds;
static pthread_mutex_t hits_lock = PTHREAD_MUTEX_INITIALIZER;

static void hit(void)
{
#ifdef FIXED
	pthread_mutex_lock(&hits_lock);
#endif
	*(volatile unsigned long *)&hits = *(volatile unsigned long *)&hits + 1; // BUG 1 2 3
#ifdef FIXED
	pthread_mutex_unlock(&hits_lock);
#endif
}

static void *work(void *unused)
{
	(void)unused;
	for (unsigned long i = 0; i < rounds; i++)
		hit();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (hits != 2 * rounds) {
		fprintf(stderr, "%lu instead of %lu\n", hits, 2 * rounds);
		abort();
	}
	return 0;
}
