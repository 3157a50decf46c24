// A thread's stack overflows into its guard, with a handler for SIGSEGV that
// has no stack of its own, while others wait for a mutex that it holds.
//
// ENDS: SIGSEGV
// FLAGS: -O0
// EVENTS: create 3
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void never(int signal)
{
	(void)signal;
	_exit(3);
}

static unsigned long deeper(unsigned long n)
{
	volatile char room[1024];

	room[0] = (char)n;
	return deeper(n + 1) + (unsigned long)room[0];
}

static void *overflows(void *arg)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&barrier);
	return (void *)deeper((unsigned long)arg);
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t;

	signal(SIGSEGV, never);
	pthread_barrier_init(&barrier, NULL, 3);
	pthread_create(&t, NULL, waits, NULL);
	pthread_create(&t, NULL, waits, NULL);
	pthread_create(&t, NULL, overflows, NULL);
	pthread_join(t, NULL);
	return 4;
}
