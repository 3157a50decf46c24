// Two threads that wait for each other's mutex for good, one that waits on a
// condition variable, and one on a semaphore, when a third thread aborts.
// ENDS: SIGABRT
// EVENTS: barrier 5
// EVENTS: mutex 3
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t empty;

static void *one(void *arg)
{
	pthread_mutex_lock(arg ? &a : &b);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(arg ? &b : &a);
	exit(3);
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	if (arg) {
		pthread_mutex_lock(&m);
		for (;;)
			pthread_cond_wait(&never, &m);
	}
	sem_wait(&empty);
	exit(3);
}

int main(void)
{
	pthread_t t;

	sem_init(&empty, 0, 0);
	pthread_barrier_init(&barrier, NULL, 5);
	pthread_create(&t, NULL, one, NULL);
	pthread_create(&t, NULL, one, &m);
	pthread_create(&t, NULL, waits, NULL);
	pthread_create(&t, NULL, waits, &m);
	pthread_barrier_wait(&barrier);
	usleep(100000);
	finish("deadlock");
}
