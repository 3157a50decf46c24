/* Two threads that compute, allocate and take turns by a lock, and variables that
 * are touched seldom, or never. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 1500
#define SUSPECTS 40

volatile uint64_t never;
uint64_t suspects[SUSPECTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;

static void *work(void *arg)
{
	uint64_t x = (uintptr_t)arg + 1;

	for (int round = 0; round < ROUNDS; round++) {
		char *bytes = malloc(1024);

		memset(bytes, round, 1024);
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005u + (unsigned char)bytes[i % 1024];
		free(bytes);
		pthread_mutex_lock(&lock);
		sum += x;
		if (round % 100 == 0)
			suspects[(round / 100 + (int)(x & 1)) % SUSPECTS] += x;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)1);
	work((void *)2);
	pthread_join(thread, NULL);
	return sum == never;
}
