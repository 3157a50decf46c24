// Two threads that take two locks in opposite orders, and a third that gives up
// waiting for them.
// ENDS: SIGABRT
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static sem_t has[2];

static void *one(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&first);
	sem_post(&has[0]);
	sem_wait(&has[1]);
	pthread_mutex_lock(&second);
	return NULL;
}

static void *other(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&second);
	sem_post(&has[1]);
	sem_wait(&has[0]);
	pthread_mutex_lock(&first);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	/* In one order it goes well. */
	pthread_mutex_lock(&first);
	pthread_mutex_lock(&second);
	pthread_mutex_unlock(&second);
	pthread_mutex_unlock(&first);
	sem_init(&has[0], 0, 0);
	sem_init(&has[1], 0, 0);
	pthread_create(&threads[0], NULL, one, NULL);
	pthread_create(&threads[1], NULL, other, NULL);
	usleep(300000);
	abort();
}
