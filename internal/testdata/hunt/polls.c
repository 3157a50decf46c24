// A right program whose threads poll: for a lock of their own, and for each other's arrival. How
// they give the processor away between two looks is the argument. It is to end with every schedule.
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
static atomic_int lock, arrived;
static int count;
static const char *how;
static struct timespec none;

static void timed_wait(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&never, &mutex, &none);
	pthread_mutex_unlock(&mutex);
}

static void relax(void)
{
	static sem_t taken;

	if (!strcmp(how, "sleep"))
		sleep(0);
	else if (!strcmp(how, "usleep"))
		usleep(0);
	else if (!strcmp(how, "past"))
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &none, NULL);
	else if (!strcmp(how, "yield"))
		sched_yield();
	else if (!strcmp(how, "pause"))
		__builtin_ia32_pause();
	else if (!strcmp(how, "condition"))
		timed_wait();
	else if (!strcmp(how, "semaphore"))
		sem_timedwait(&taken, &none);
	else if (!strcmp(how, "stream"))
		putc('.', stdout); /* its lock passes between two that poll, and a third one is not to starve */
}

static void *work(void *arg)
{
	atomic_fetch_add(&arrived, 1);
	while (arrived < THREADS)
		relax();
	for (int i = 0; i < 5; i++) {
		while (atomic_exchange(&lock, 1))
			relax();
		count++;
		atomic_store(&lock, 0);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];

	how = argc > 1 ? argv[1] : "";
	for (int i = 1; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, NULL);
	work(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return count != 5 * THREADS;
}
