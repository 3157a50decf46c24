// ENDS: SIGABRT
// EVENTS: sem 12000
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum { THREADS = 4, TURNS = 1500 };

static sem_t room, things, mutex, between;
static int ring[4], in, out;
static long taken, sum, values;

static void *put(void *arg)
{
	(void)arg;
	for (int i = 1; i <= TURNS; i++) {
		CHECK(!sem_wait(&room));
		CHECK(!sem_wait(&mutex));
		ring[in++ % 4] = i;
		came(1);
		CHECK(!sem_post(&mutex));
		CHECK(!sem_post(&things));
	}
	return NULL;
}

static void *take(void *arg)
{
	int value;

	(void)arg;
	for (int i = 1; i <= TURNS; i++) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec += 20;
		if (i % 2)
			CHECK(!sem_wait(&things));
		else
			CHECK(!sem_timedwait(&things, &t));
		if (sem_trywait(&mutex)) {
			CHECK(errno == EAGAIN);
			CHECK(!sem_wait(&mutex));
		}
		sum += ring[out++ % 4];
		taken++;
		CHECK(!sem_getvalue(&things, &value));
		values += value;
		came(2);
		CHECK(!sem_post(&mutex));
		CHECK(!sem_post(&room));
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	struct timespec past = { 1, 0 }, bad = { 0, 1000000000 };

	CHECK(!sem_init(&room, 0, 4) && !sem_init(&things, 0, 0) && !sem_init(&mutex, 0, 1));
	CHECK(!sem_init(&between, 1, 1));
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, i % 2 ? put : take, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(!sem_wait(&between) && sem_trywait(&between) && errno == EAGAIN);
	CHECK(!sem_post(&between) && !sem_wait(&between));
	CHECK(sem_timedwait(&things, &past) && errno == ETIMEDOUT);
	CHECK(sem_clockwait(&things, CLOCK_MONOTONIC, &bad) && errno == EINVAL);
	CHECK(taken == THREADS / 2 * TURNS && sum == (long)THREADS / 2 * TURNS * (TURNS + 1) / 2);
	finish("sem");
}
