// A thread calls _exit while others compute, and one waits in a system call.
//
// ENDS: exit 7
// EVENTS: create 4
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long turns[3];
static pthread_barrier_t barrier;

__attribute__((noreturn)) static void *computes(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (volatile unsigned long *n = arg;; (*n)++)
		;
}

static void *leaves(void *arg)
{
	pthread_barrier_wait(&barrier);
	usleep(20000);
	_exit(arg ? 7 : 8);
}

int main(void)
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, computes, (void *)&turns[i]);
	pthread_create(&t, NULL, leaves, &t);
	pause();
	return 3;
}
