// Cancellation: of a thread in a call of the kernel, in a join, in a condition,
// in a computation with the asynchronous type, of one that does not allow it,
// before it starts and after it ended, and from a destructor.
// ENDS: SIGABRT
// EVENTS: cancel 5
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t ready, allowed;
static int pipes[2];
static volatile unsigned long turns;
static int unlocked;
static pthread_t sleeper;

static void *reads(void *unused)
{
	char byte;

	sem_post(&ready);
	assert(read(pipes[0], &byte, 1) != 1);
	return unused;
}

static void unlock(void *mutex)
{
	unlocked++;
	pthread_mutex_unlock(mutex);
}

static void *waits(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlock, &lock);
	sem_post(&ready);
	for (;;)
		pthread_cond_wait(&never, &lock);
	pthread_cleanup_pop(1);
	return unused;
}

static void *computes(void *unused)
{
	int old;

	assert(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
	sem_post(&ready);
	/* The breakpoint that finds the place again stops at each turn. */
	for (;;)
		if (++turns % 16 == 0)
			usleep(20);
	return unused;
}

static void *refuses(void *unused)
{
	int old;

	assert(!pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
	sem_post(&ready);
	while (sem_wait(&allowed))
		;
	pthread_testcancel();
	return unused;
}

static void *joins(void *unused)
{
	sem_post(&ready);
	pthread_join(sleeper, NULL);
	return unused;
}

static void *(*const all[])(void *) = { reads, waits, computes, joins, refuses };

int main(void)
{
	pthread_t threads[5];
	void *value;

	assert(!pipe(pipes) && !sem_init(&ready, 0, 0) && !sem_init(&allowed, 0, 0));
	assert(!pthread_create(&sleeper, NULL, reads, NULL));
	sem_wait(&ready);
	for (int i = 0; i < 5; i++)
		assert(!pthread_create(&threads[i], NULL, all[i], NULL));
	for (int i = 0; i < 5; i++)
		sem_wait(&ready);
	usleep(2000);
	for (int i = 0; i < 5; i++)
		assert(!pthread_cancel(threads[i]));
	sem_post(&allowed);
	for (int i = 0; i < 5; i++) {
		assert(!pthread_join(threads[i], &value));
		assert(value == (i < 4 ? PTHREAD_CANCELED : NULL));
	}
	assert(unlocked == 1 && turns);
	assert(!pthread_cancel(sleeper) && !pthread_join(sleeper, &value) && value == PTHREAD_CANCELED);
	assert(!pthread_mutex_trylock(&lock));
	printf("cancelled\n");
	abort();
}
