/* TWIN: main waits for input, workers for work; SIGTERM ends it with a status. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static int jobs;
static void asked(int n) { (void)n; _exit(4); }
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
	pthread_t t;
	char b[100];
	int p[2];
	signal(SIGINT, asked);
	pthread_create(&t, NULL, worker, NULL);
	if (pipe(p) != 0)
		return 9;
	while (read(p[0], b, sizeof b) > 0)
		;
	return 0;
}
