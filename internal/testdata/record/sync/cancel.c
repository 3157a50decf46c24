// Threads that are cancelled while they wait: on a condition variable, where the
// mutex must be taken again for the cleanup handlers, on a semaphore, and in an
// initialiser of pthread_once, which another thread then runs.
// ENDS: SIGABRT
// EVENTS: cancel 5
// EVENTS: cond 2
// EVENTS: sem 6
// EVENTS: once 2
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty, ready;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cleaned, initialised, attempts;

static void clean(void *arg)
{
	(void)arg;
	CHECK(pthread_mutex_trylock(&m) == EBUSY);
	cleaned++;
	came(1);
	CHECK(!pthread_mutex_unlock(&m));
}

static void *wait_cond(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&m);
	pthread_cleanup_push(clean, NULL);
	sem_post(&ready);
	for (;;)
		pthread_cond_wait(&never, &m);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *wait_sem(void *arg)
{
	(void)arg;
	sem_post(&ready);
	sem_wait(&empty);
	return NULL;
}

static void initialise(void)
{
	if (!attempts++) {
		sem_post(&ready);
		sem_wait(&empty);
	}
	initialised++;
}

static void *wait_once(void *arg)
{
	(void)arg;
	pthread_once(&once, initialise);
	return NULL;
}

static void cancel(void *(*start)(void *), int late)
{
	pthread_t t;
	void *result;

	CHECK(!pthread_create(&t, NULL, start, NULL));
	CHECK(!sem_wait(&ready));
	if (late)
		usleep(20000);
	CHECK(!pthread_cancel(t));
	CHECK(!pthread_join(t, &result) && result == PTHREAD_CANCELED);
}

int main(void)
{
	sem_init(&empty, 0, 0);
	sem_init(&ready, 0, 0);
	for (int late = 0; late < 2; late++) {
		cancel(wait_cond, late);
		cancel(wait_sem, late);
	}
	CHECK(cleaned == 2);
	CHECK(!pthread_mutex_trylock(&m) && !pthread_mutex_unlock(&m));
	cancel(wait_once, 1);
	pthread_once(&once, initialise);
	CHECK(initialised == 1 && attempts == 2);
	finish("cancel");
}
