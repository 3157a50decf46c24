// What a small test does: four threads, a queue, some hundred steps, and no bug.
// ENDS: exit 0
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int queue[4], length, taken;

static void *produce(void *arg)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock);
		while (length == 4)
			pthread_cond_wait(&moved, &lock);
		queue[length++] = i;
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

static void *consume(void *arg)
{
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&lock);
		while (!length)
			pthread_cond_wait(&moved, &lock);
		taken += queue[--length];
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(threads + i, NULL, i % 2 ? produce : consume, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (taken != 90)
		abort();
	return 0;
}
