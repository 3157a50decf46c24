// abort in a thread that holds a mutex, while another waits for it and others
// allocate.
//
// ENDS: SIGABRT
// EVENTS: create 4
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void *allocates(void *arg)
{
	void *kept[64] = { NULL };

	pthread_barrier_wait(&barrier);
	for (unsigned long i = 0;; i++) {
		free(kept[i % 64]);
		kept[i % 64] = malloc(i * 7 % 5000 + 1);
		memset(kept[i % 64], (int)i, i * 7 % 5000 + 1);
	}
	return arg;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&lock);
	return arg;
}

static void *aborts(void *arg)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&barrier);
	usleep(20000);
	abort();
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 4);
	pthread_create(&t, NULL, allocates, NULL);
	pthread_create(&t, NULL, allocates, NULL);
	pthread_create(&t, NULL, waits, NULL);
	pthread_create(&t, NULL, aborts, NULL);
	pthread_join(t, NULL);
	return 3;
}
