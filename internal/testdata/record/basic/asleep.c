// Threads that are asleep when the process dies. The kernel, which stops them
// for the core, writes the time that they had left.
//
// ENDS: SIGABRT
// EVENTS: create 3
// EVENTS: syscall 6
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static sem_t ready;

static void *in_sleep(void *argument)
{
	sem_post(&ready);
	sleep(1000);
	return argument;
}

static void *in_clock(void *argument)
{
	struct timespec time = { .tv_sec = 1000 };

	sem_post(&ready);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time);
	return argument;
}

static void *in_poll(void *argument)
{
	const struct timespec time = { .tv_sec = 1000 };

	sem_post(&ready);
	ppoll(NULL, 0, &time, NULL);
	return argument;
}

int main(void)
{
	void *(*const starts[])(void *) = { in_sleep, in_clock, in_poll };
	pthread_t thread;

	sem_init(&ready, 0, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, starts[i], NULL);
	for (int i = 0; i < 3; i++)
		sem_wait(&ready);
	usleep(50000);
	abort();
}
