// A queue between producers and consumers, a gate that a broadcast opens, waits
// with a time, and a recursive mutex that stays taken.
// ENDS: SIGABRT
// EVENTS: cond 5
// EVENTS: mutex 5
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { PRODUCERS = 2, CONSUMERS = 3, ITEMS = 1500, ROOM = 8 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER, gate, never;
static int open_gate, queue[ROOM], have, head;
static long sum, got, through;

static void *produce(void *arg)
{
	for (int i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&m);
		while (have == ROOM)
			CHECK(!pthread_cond_wait(&emptied, &m));
		queue[(head + have++) % ROOM] = i;
		came((uint64_t)arg);
		CHECK(!pthread_cond_signal(&filled));
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static void *consume(void *arg)
{
	pthread_mutex_lock(&m);
	while (!open_gate)
		CHECK(!pthread_cond_wait(&gate, &m));
	through++;
	while (got < PRODUCERS * ITEMS) {
		if (!have) {
			struct timespec t;

			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_sec += 1;
			pthread_cond_timedwait(&filled, &m, &t);
			continue;
		}
		sum += queue[head];
		head = (head + 1) % ROOM;
		have--;
		if (++got == PRODUCERS * ITEMS)
			pthread_cond_broadcast(&filled);
		came((uint64_t)arg + 100);
		pthread_cond_signal(&emptied);
	}
	pthread_mutex_unlock(&m);
	return NULL;
}

static void time_out(void)
{
	pthread_mutex_t twice = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
	struct timespec t, bad = { 0, -1 };

	pthread_mutex_lock(&twice);
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec -= t.tv_sec > 0;
	CHECK(pthread_cond_timedwait(&never, &twice, &t) == ETIMEDOUT);
	pthread_mutex_lock(&twice);
	CHECK(pthread_cond_timedwait(&never, &twice, &(struct timespec){ 1, 0 }) == ETIMEDOUT);
	CHECK(pthread_cond_clockwait(&never, &twice, CLOCK_REALTIME, &(struct timespec){ 1, 0 }) == ETIMEDOUT);
	CHECK(pthread_cond_timedwait(&never, &twice, &bad) == EINVAL);
	CHECK(!pthread_mutex_unlock(&twice));
	CHECK(!pthread_mutex_unlock(&twice));
	CHECK(pthread_mutex_unlock(&twice) == EPERM);
	CHECK(pthread_cond_wait(&never, &checking) == EPERM);
}

int main(void)
{
	pthread_t t[PRODUCERS + CONSUMERS];
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&gate, NULL);
	pthread_cond_init(&never, &monotonic);
	for (long i = 0; i < PRODUCERS + CONSUMERS; i++)
		pthread_create(&t[i], NULL, i < PRODUCERS ? produce : consume, (void *)i);
	time_out();
	pthread_mutex_lock(&m);
	open_gate = 1;
	CHECK(!pthread_cond_broadcast(&gate));
	pthread_mutex_unlock(&m);
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		pthread_join(t[i], NULL);
	CHECK(sum == (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2 && through == CONSUMERS);
	CHECK(!pthread_cond_destroy(&gate) && !pthread_cond_destroy(&filled));
	finish("cond");
}
