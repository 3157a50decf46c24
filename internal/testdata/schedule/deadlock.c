// Threads that depend on the order of locks and signals (figure 3 E): whoever comes
// third would wait for ever in another order. The log has that order, so a replay
// without any preemption reaches the end.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int waiting, done;

static void *waits(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_cond_wait(&turn, &lock); /* without a look: it must have come first */
	done++;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *wakes(void *argument)
{
	int ready;

	(void)argument;
	do {
		pthread_mutex_lock(&lock);
		ready = waiting;
		if (ready)
			pthread_cond_signal(&turn);
		pthread_mutex_unlock(&lock);
		getppid();
	} while (!ready);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, waits, NULL);
	pthread_create(&threads[1], NULL, wakes, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	if (done == 1)
		abort();
	return 0;
}
