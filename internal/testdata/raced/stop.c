// The buffer is freed before the third helper has ended.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long *buffer, added, rounds;
static int stop, left;

static void *helper(void *arg)
{
	long pace = (long)arg;
	for (int i = 0;; i++) {
		pthread_mutex_lock(&lock);
		int ends = stop;
		rounds++;
		pthread_mutex_unlock(&lock);
		if (ends && i > 3)
			break;
		usleep(pace);
		pthread_mutex_lock(&lock);
		buffer[i % 16] += i; // BUG
		added += i;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	left++;
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	pthread_t t[3];
	buffer = calloc(16, sizeof *buffer);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, helper, (void *)(long)(30 + 40 * i));
	usleep(400 + getpid() % 5 * 60);
	pthread_mutex_lock(&lock);
	stop = 1;
	pthread_mutex_unlock(&lock);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL); // BUG
	pthread_mutex_lock(&lock);
	free(buffer); // BUG
	buffer = NULL; // BUG
	pthread_mutex_unlock(&lock);
	pthread_join(t[2], NULL);
	printf("%ld %ld %d\n", added, rounds, left);
	return 0;
}
