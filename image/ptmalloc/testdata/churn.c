/* Allocates and frees at random in several threads, then dies of a signal in the middle of
 * the program: a heap in which nothing is damaged. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, SLOTS = 600, ROUNDS = 20000 };
static void *kept[THREADS][SLOTS];
static pthread_barrier_t done;

static void *churn(void *arg)
{
	uintptr_t me = (uintptr_t)arg;
	uint32_t x = 12345 + (uint32_t)me;
	for (int i = 0; i < ROUNDS; i++) {
		x = x * 1664525 + 1013904223;
		void **slot = &kept[me][(x >> 8) % SLOTS];
		if (*slot) {
			free(*slot);
			*slot = 0;
		} else {
			size_t n = (x >> 20) % 8 ? (x >> 12) % 500 : (x >> 4) % 200000;
			*slot = malloc(n);
			memset(*slot, (int)x, n);
		}
	}
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&done);
	return 0;
}

int main(void)
{
	pthread_t t;
	pthread_barrier_init(&done, 0, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t, 0, churn, (void *)i);
	pthread_barrier_wait(&done);
	raise(SIGSEGV);
	return 0;
}
