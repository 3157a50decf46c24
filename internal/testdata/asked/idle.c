/* TWIN: workers wait for work, main polls for it; Ctrl-C ends it well. Nothing hangs. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int jobs;
static volatile sig_atomic_t stop;
static void asked(int n) { (void)n; stop = 1; }
static void *worker(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!jobs)
			pthread_cond_wait(&work, &lock);
		jobs--;
	}
	return arg;
}
int main(void)
{
	pthread_t t[2];
	signal(SIGINT, asked);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, worker, NULL);
	while (!stop) {
		struct timespec s = {0, 20000000};
		nanosleep(&s, NULL);
		if (access("job", F_OK) == 0) {
			pthread_mutex_lock(&lock);
			jobs++;
			pthread_cond_signal(&work);
			pthread_mutex_unlock(&lock);
		}
	}
	return 130;
}
