// locks MODE THREADS COUNT: what a pair of lock and unlock costs, in ns per pair,
// by the clock and of processors' time.
// own: each thread takes a mutex of its own. contended: all take one. recursive,
// spin: as own, with such a lock. cond: two threads wake each other in turn.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 64 };

struct own {
	pthread_mutex_t mutex;
	pthread_spinlock_t spin;
	long counter;
} __attribute__((aligned(128)));

static struct own own[MOST], one;
static long count;
static const char *mode;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn;
static sem_t sem;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static void take_own(struct own *o)
{
	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&o->mutex);
		o->counter++;
		pthread_mutex_unlock(&o->mutex);
	}
}

static void take_spin(struct own *o)
{
	for (long i = 0; i < count; i++) {
		pthread_spin_lock(&o->spin);
		o->counter++;
		pthread_spin_unlock(&o->spin);
	}
}

static void take_turns(long me)
{
	pthread_mutex_lock(&one.mutex);
	for (long i = 0; i < count; i++) {
		while (turn % 2 != me)
			pthread_cond_wait(&turned, &one.mutex);
		turn++;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&one.mutex);
}

static void *work(void *arg)
{
	long me = (long)arg;

	if (!strcmp(mode, "own") || !strcmp(mode, "recursive"))
		take_own(&own[me]);
	else if (!strcmp(mode, "contended"))
		take_own(&one);
	else if (!strcmp(mode, "spin"))
		take_spin(&own[me]);
	else if (!strcmp(mode, "cond"))
		take_turns(me % 2);
	else if (!strcmp(mode, "sem"))
		for (long i = 0; i < count; i++) {
			sem_wait(&sem);
			sem_post(&sem);
		}
	else
		for (long i = 0; i < count; i++) {
			pthread_rwlock_rdlock(&rw);
			pthread_rwlock_unlock(&rw);
		}
	return NULL;
}

static double per_pair(const struct timespec *from, const struct timespec *to, long threads)
{
	double ns = (double)(to->tv_sec - from->tv_sec) * 1e9 + (double)(to->tv_nsec - from->tv_nsec);

	return ns / (double)(count * threads);
}

int main(int argc, char **argv)
{
	pthread_t t[MOST];
	struct timespec from, to, used;
	pthread_mutexattr_t a;
	long threads;

	if (argc != 4) {
		fprintf(stderr, "usage: locks own|contended|recursive|spin|cond|sem|read THREADS COUNT\n");
		return 2;
	}
	mode = argv[1];
	threads = atol(argv[2]);
	count = atol(argv[3]);
	if (threads < 1 || threads > MOST)
		return 2;
	pthread_mutexattr_init(&a);
	if (!strcmp(mode, "recursive"))
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	sem_init(&sem, 0, 1);
	for (long i = 0; i < threads; i++) {
		pthread_mutex_init(&own[i].mutex, &a);
		pthread_spin_init(&own[i].spin, PTHREAD_PROCESS_PRIVATE);
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	printf("%s %ld: %.2f ns, %.2f ns of processors\n", mode, threads, per_pair(&from, &to, threads),
	       per_pair(&(struct timespec){ 0, 0 }, &used, threads));
	return 0;
}
