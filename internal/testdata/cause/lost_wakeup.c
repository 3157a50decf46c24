// A consumer that looks whether there is a job, and waits if there is none. Whoever
// brings one in between wakes up no thread; the watchdog ends the program.
// CAUSE kind=order-violation|atomicity-violation variable=pending pattern=RW missing=job_lock
// FAILS signal=SIGABRT says="no thread took the job"
// RUNS fail: 5 25
// RUNS pass: 60 5
// COMPILERS: gcc clang
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_there = PTHREAD_COND_INITIALIZER;
static int pending;
static int done;

static void report_idle(void)
{
	write(1, "idle\n", 5);
	usleep(40000); /* the monitoring is remote */
}

static int take_job(void)
{
	int job;

#ifdef FIXED
	report_idle();
	pthread_mutex_lock(&job_lock);
	while (!pending)
		pthread_cond_wait(&job_there, &job_lock);
#else
	if (!pending) { // BUG 1
		report_idle();
		pthread_mutex_lock(&job_lock);
		pthread_cond_wait(&job_there, &job_lock);
	} else {
		pthread_mutex_lock(&job_lock);
	}
#endif
	job = pending;
	pending = 0;
	pthread_mutex_unlock(&job_lock);
	return job;
}

static void bring_job(int job)
{
	pthread_mutex_lock(&job_lock);
	pending = job; // BUG 2
	pthread_cond_signal(&job_there);
	pthread_mutex_unlock(&job_lock);
}

static void *consume(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	done = take_job();
	return NULL;
}

static void *produce(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	bring_job(7);
	return NULL;
}

int main(int argc, char **argv)
{
	int consumes = argc > 1 ? atoi(argv[1]) : 60, produces = argc > 2 ? atoi(argv[2]) : 5;
	struct timespec limit;
	pthread_t consumer, producer;

	pthread_create(&consumer, NULL, consume, &consumes);
	pthread_create(&producer, NULL, produce, &produces);
	pthread_join(producer, NULL);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 1;
	if (pthread_timedjoin_np(consumer, NULL, &limit)) {
		fprintf(stderr, "no thread took the job\n");
		abort();
	}
	return done != 7;
}
