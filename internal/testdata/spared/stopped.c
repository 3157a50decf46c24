/* A worker writes to a buffer that was freed meanwhile. The program ends with 1 since it was told to stop: that has nothing to do with the
 * damage, and stays without it. */
// ENDS: exit 1
// FLAGS: -pthread
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int stopped, looked, freed, done;
static char *buffer;

static int is_stopped(void)
{
	pthread_mutex_lock(&lock);
	int s = stopped;
	looked++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return s;
}

static void *work(void *arg)
{
	if (!is_stopped()) {
		pthread_mutex_lock(&lock);
		while (!freed)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		strcpy(buffer, "after the end");
	}
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return arg;
}

static int stop(void)
{
	pthread_mutex_lock(&lock);
	stopped = 1;
	pthread_mutex_unlock(&lock);
	free(buffer);
	pthread_mutex_lock(&lock);
	freed = 1;
	pthread_cond_broadcast(&changed);
	while (!done)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	fprintf(stderr, "stopped\n");
	return stopped;
}

int main(void)
{
	pthread_t t;
	buffer = malloc(100);
	pthread_create(&t, NULL, work, NULL);
	pthread_mutex_lock(&lock);
	while (!looked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	int status = stop();
	pthread_join(t, NULL);
	_exit(status); /* without the check of the heap at exit */
}
