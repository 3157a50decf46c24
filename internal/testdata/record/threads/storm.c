// Several threads create threads, detached and joinable, as fast as they can:
// stacks are used again, and who gets which depends on the order.
// ENDS: SIGABRT
// EVENTS: create 804
// EVENTS: detach 200
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int running;
static void *places[1024];
static int count;

static void *leaf(void *number)
{
	int here;

	pthread_mutex_lock(&lock);
	places[count++ % 1024] = &here;
	if (!--running)
		pthread_cond_signal(&done);
	pthread_mutex_unlock(&lock);
	return number;
}

static void started(void)
{
	pthread_mutex_lock(&lock);
	running++;
	pthread_mutex_unlock(&lock);
}

static void *creator(void *number)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *value;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 200; i++) {
		started();
		if (i % 4 == 0) {
			assert(!pthread_create(&thread, &attr, leaf, number));
			continue;
		}
		assert(!pthread_create(&thread, NULL, leaf, number));
		if (i % 4 == 1) {
			assert(!pthread_detach(thread));
			continue;
		}
		assert(!pthread_join(thread, &value) && value == number);
	}
	pthread_attr_destroy(&attr);
	return NULL;
}

int main(void)
{
	pthread_t creators[4];

	for (long i = 0; i < 4; i++)
		assert(!pthread_create(&creators[i], NULL, creator, (void *)i));
	for (int i = 0; i < 4; i++)
		assert(!pthread_join(creators[i], NULL));
	pthread_mutex_lock(&lock);
	while (running)
		pthread_cond_wait(&done, &lock);
	pthread_mutex_unlock(&lock);
	printf("%d threads, the last one's stack %p\n", count, places[(count - 1) % 1024]);
	abort();
}
