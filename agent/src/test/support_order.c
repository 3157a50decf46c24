/* Threads that allocate and free in turn, in an order that a seed decides, each
 * other's objects among them; then a second generation in the first one's
 * heaps. Prints a digest of all addresses: it follows from the order alone. */
#include <pthread.h>
#include <string.h>

#include "support_agent.h"

#define THREADS 4
#define TURNS 120
#define OBJECTS 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static unsigned turn; /* who is next; under the lock */
static uint64_t rng, digest;
static void *objects[OBJECTS];

static unsigned next_random(unsigned limit)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(rng >> 33) % limit;
}

static size_t random_size(void)
{
	static const size_t limits[] = { 40, 600, 9000, 400000 };

	return next_random((unsigned)limits[next_random(100) < 2 ? 3 : next_random(3)]);
}

static void step(void)
{
	void **p = &objects[next_random(OBJECTS)];

	switch (next_random(4)) {
	case 0:
		*p = realloc(*p, random_size() + 1);
		break;
	case 1:
		free(*p);
		*p = NULL;
		break;
	default:
		free(*p);
		*p = malloc(random_size() + 1);
	}
	digest = (digest ^ (uint64_t)*p) * 0x9e3779b97f4a7c15ull;
	if (*p)
		memset(*p, 1, 1);
}

static void *worker(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned t = 0; t < TURNS; t++) {
		pthread_mutex_lock(&lock);
		while (turn % THREADS != me)
			pthread_cond_wait(&turned, &lock);
		for (unsigned n = next_random(40); n; n--)
			step();
		turn++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	rng = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	agent_root();
	for (unsigned generation = 0; generation < 2; generation++) {
		/* A heap goes back when its thread ends: one after the other. */
		for (uintptr_t i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&t[i], NULL, worker, (void *)i));
		for (unsigned i = 0; i < THREADS; i++)
			CHECK(!pthread_join(t[i], NULL));
	}
	printf("%016lx\n", digest);
	return 0;
}
