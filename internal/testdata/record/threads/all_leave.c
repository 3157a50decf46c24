// All threads end by themselves, at about the same time: the last one of them
// runs what atexit was told.
// ENDS: SIGABRT
// EVENTS: exit 8
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_barrier_t together;

static void fail(void)
{
	abort();
}

static void *leave(void *unused)
{
	pthread_barrier_wait(&together);
	return unused;
}

int main(void)
{
	pthread_t thread;

	atexit(fail);
	assert(!pthread_barrier_init(&together, NULL, 9));
	for (int i = 0; i < 8; i++)
		assert(!pthread_create(&thread, NULL, leave, NULL));
	pthread_barrier_wait(&together);
	pthread_exit(NULL);
}
