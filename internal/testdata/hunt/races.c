// Threads that tell each other things by plain variables: what they come to follows
// from the schedule alone.
// ENDS: exit 7
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile uint64_t shared[4], seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void *work(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < 20; i++) {
		shared[me] = shared[(me + 1) % 4] * 31 + i;
		seen = seen * 1000003 + shared[(me + 2) % 4];
		if (i % 5 == me)
			usleep(100);
		pthread_mutex_lock(&lock);
		seen ^= me;
		if (i % 7 == 3)
			pthread_cond_signal(&moved);
		pthread_mutex_unlock(&lock);
		free(malloc(16 + seen % 512));
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(threads + i, NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("%llx\n", (unsigned long long)seen);
	return 7;
}
