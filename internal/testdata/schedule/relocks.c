// A mutex that its last owner takes again is no event: the calls are between two
// events of a thread.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMES 5

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static volatile int counted;

static void *counts(void *argument)
{
	(void)argument;
	getppid();
	for (int i = 0; i < TIMES; i++) {
		pthread_mutex_lock(&mutex);
		counted++;
		pthread_mutex_unlock(&mutex);
	}
	getuid();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, counts, NULL);
	pthread_join(thread, NULL);
	abort();
}
