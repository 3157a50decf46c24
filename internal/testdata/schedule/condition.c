// A condition that is waited for or not (figure 3 C): the flag is set without the
// lock, so that a look before waiting races with it.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static volatile int ready, item;

static pthread_barrier_t start;

static void work(int amount)
{
	for (volatile int i = 0; i < amount * 10000; i++)
		;
}

static void *fills(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	getppid();
	work(200);
	ready = 1; /* before the item is there */
	work(600);
	item = 1;
	getgid();
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *takes(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	work(300);
	pthread_mutex_lock(&lock);
	work(200);
	while (!ready)
		pthread_cond_wait(&filled, &lock);
	if (!item)
		abort();
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, fills, NULL);
	pthread_create(&threads[1], NULL, takes, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
