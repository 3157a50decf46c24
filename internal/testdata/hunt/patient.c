// A thread that waits for another by trying again and again, in each way that there
// is, and sleeps for longer than anybody has time.
// ENDS: exit 0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile int step;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void *other(void *arg)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 3; i++)
		sleep(1000);
	step = 1;
	pthread_mutex_unlock(&lock);
	while (step == 1)
		poll(NULL, 0, 10);
	for (int i = 0; i < 3; i++)
		sched_yield();
	step = 3;
	return arg;
}

int main(void)
{
	struct timespec until;
	long start = now();
	pthread_t t;

	sem_init(&sem, 0, 0);
	pthread_create(&t, NULL, other, NULL);
	while (!step)
		sched_yield();
	while (pthread_mutex_trylock(&lock))
		;
	pthread_mutex_unlock(&lock);
	step = 2;
	while (step == 2)
		clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 500;
	if (sem_timedwait(&sem, &until) != -1 || errno != ETIMEDOUT || now() < start + 3500)
		abort();
	pthread_join(t, NULL);
	return 0;
}
