/* Allocates and frees at random in several threads, and writes down each call, in order. Then it
 * dies of a signal while no thread is inside the allocator. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, SLOTS = 500, ROUNDS = 8000, EVENTS = 1 << 16 };

/* The usable size; 0: freed. */
struct event {
	void *at;
	uint64_t size;
};
struct event events[EVENTS];
uint64_t event_count;

static void *kept[THREADS][SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t done;

static void note(void *at, uint64_t size)
{
	events[event_count].at = at;
	events[event_count++].size = size;
}

static uint64_t size_of(uint32_t x)
{
	switch (x % 32) {
	case 0:
		return 300000 + x % 3000000; /* huge */
	case 1:
	case 2:
	case 3:
		return 5000 + x / 32 % 100000;
	case 4:
	case 5:
	case 6:
	case 7:
		return 600 + x / 32 % 5000;
	}
	return 1 + x / 32 % 600;
}

static void *churn(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint32_t x = 12345 + 77 * (uint32_t)me;
	/* pthread_create allocates, too. */
	pthread_barrier_wait(&done);
	for (int i = 0; i < ROUNDS; i++) {
		x = x * 1664525 + 1013904223;
		/* Objects are freed by other threads, too. */
		void **slot = &kept[(x >> 3) % THREADS][(x >> 8) % SLOTS];
		pthread_mutex_lock(&lock);
		if (*slot) {
			note(*slot, 0);
			free(*slot);
			*slot = 0;
		} else {
			uint64_t n = size_of(x >> 5);
			*slot = malloc(n);
			memset(*slot, (int)x | 1, n < 64 ? n : 64);
			note(*slot, malloc_usable_size(*slot));
		}
		pthread_mutex_unlock(&lock);
	}
	pthread_barrier_wait(&done);
	if (me == 1)
		return 0; /* and its cache ends with it */
	pthread_barrier_wait(&done);
	return 0;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_barrier_init(&done, 0, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, churn, (void *)i);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&done);
	pthread_join(t[1], 0);
	raise(SIGSEGV);
	return 0;
}
