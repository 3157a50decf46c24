// Handlers that run while a thread waits: sem_wait returns for one without
// SA_RESTART, continues for one with it; the others continue in any case, and the
// handler has run by then.
// ENDS: SIGABRT
// EVENTS: sem 10
// EVENTS: signal 5
// EVENTS: cond 1
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem, answer, stands;
static volatile int handled, interrupted, done;

static void handle(int signal)
{
	(void)signal;
	handled++;
	sem_post(&answer);
}

static void *work(void *arg)
{
	(void)arg;
	sem_post(&stands);
	CHECK(sem_wait(&sem) == -1 && errno == EINTR);
	interrupted++;
	sem_post(&stands);
	CHECK(!sem_wait(&sem));
	sem_post(&stands);
	CHECK(!pthread_mutex_lock(&held));
	sem_post(&stands);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&m);
	sem_post(&stands);
	while (!done)
		pthread_cond_wait(&cond, &m);
	pthread_mutex_unlock(&m);
	return NULL;
}

static void send(pthread_t t, int signal, int at)
{
	usleep(20000); // until it sleeps
	pthread_kill(t, signal);
	while (sem_wait(&answer))
		;
	came((uint64_t)at);
}

static void hit(pthread_t t, int signal, int at)
{
	CHECK(!sem_wait(&stands));
	send(t, signal, at);
}

// What came before the thread slept has interrupted nothing.
static int came_back(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	return !sem_timedwait(&stands, &until);
}

int main(void)
{
	struct sigaction a = { .sa_handler = handle };
	pthread_t t;

	sigaction(SIGUSR1, &a, NULL);
	a.sa_flags = SA_RESTART;
	sigaction(SIGUSR2, &a, NULL);
	sem_init(&sem, 0, 0);
	sem_init(&answer, 0, 0);
	sem_init(&stands, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_mutex_lock(&held);
	pthread_create(&t, NULL, work, NULL);
	CHECK(!sem_wait(&stands));
	do
		send(t, SIGUSR1, 1);
	while (!came_back());
	send(t, SIGUSR2, 2);
	sem_post(&sem);
	hit(t, SIGUSR1, 3);
	pthread_mutex_unlock(&held);
	hit(t, SIGUSR1, 4);
	pthread_barrier_wait(&barrier);
	hit(t, SIGUSR1, 5);
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&m);
	pthread_join(t, NULL);
	CHECK(handled >= 5 && interrupted == 1);
	finish("eintr");
}
