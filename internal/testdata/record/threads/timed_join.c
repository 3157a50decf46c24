// Joins that do not wait, or not for ever.
// ENDS: SIGABRT
// EVENTS: join 5
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sem_t go;

static void *wait_for_go(void *value)
{
	while (sem_wait(&go))
		;
	return value;
}

static struct timespec soon(clockid_t clock, long milliseconds)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += milliseconds * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

int main(void)
{
	struct timespec until;
	pthread_t thread;
	void *value;
	int tries = 0;

	assert(!sem_init(&go, 0, 0));
	assert(!pthread_create(&thread, NULL, wait_for_go, &go));
	assert(pthread_tryjoin_np(thread, &value) == EBUSY);
	until = soon(CLOCK_REALTIME, 5);
	assert(pthread_timedjoin_np(thread, &value, &until) == ETIMEDOUT);
	until = soon(CLOCK_MONOTONIC, 5);
	assert(pthread_clockjoin_np(thread, &value, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
	sem_post(&go);
	while (pthread_tryjoin_np(thread, &value) == EBUSY)
		tries++;
	assert(value == &go);
	assert(!pthread_create(&thread, NULL, wait_for_go, &until));
	sem_post(&go);
	until = soon(CLOCK_REALTIME, 10000);
	assert(!pthread_timedjoin_np(thread, &value, &until) && value == &until);
	printf("%d tries\n", tries);
	abort();
}
