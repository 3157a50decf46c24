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

static __thread unsigned long mark; /* of the last hit, for samples */

static void hit(void)
{
	unsigned long seen;

#ifdef FIXED
	pthread_mutex_lock(&hits_lock);
#endif
	seen = __atomic_load_n(&hits, __ATOMIC_RELAXED); // BUG 1
	for (int i = 0; i < 8; i++)
		mark = mark << 7 ^ mark >> 3 ^ seen;
	__atomic_store_n(&hits, seen + 1, __ATOMIC_RELAXED); // BUG 2 3
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
