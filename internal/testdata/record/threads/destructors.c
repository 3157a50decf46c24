// Destructors of thread-specific values run in threads that return, that call
// pthread_exit and that are cancelled; one sets its value again.
// ENDS: SIGABRT
// EVENTS: cancel 2
// EVENTS: exit 6
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_key_t first, second;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int firsts, seconds, again, cleanups;
static sem_t ready;
static __thread char local[64];

static void destroy_first(void *value)
{
	pthread_mutex_lock(&lock);
	firsts++;
	pthread_mutex_unlock(&lock);
	strcat(local, "f");
	free(value);
}

static void destroy_second(void *value)
{
	pthread_mutex_lock(&lock);
	seconds++;
	pthread_mutex_unlock(&lock);
	if (strlen(local) < 3) {
		again++;
		strcat(local, "s");
		pthread_setspecific(second, value);
		return;
	}
	free(value);
}

static void clean(void *value)
{
	cleanups++;
	free(value);
}

static void prepare(void)
{
	pthread_setspecific(first, malloc(24));
	pthread_setspecific(second, malloc(240));
}

static void *returns(void *unused)
{
	prepare();
	return unused;
}

static void *exits(void *unused)
{
	prepare();
	pthread_cleanup_push(clean, malloc(7));
	pthread_exit((void *)5);
	pthread_cleanup_pop(0);
	return unused;
}

static void *is_cancelled(void *how)
{
	prepare();
	pthread_cleanup_push(clean, malloc(77));
	sem_post(&ready);
	for (;;) {
		if (how) {
			pause();
		} else {
			pthread_testcancel();
			sched_yield();
		}
	}
	pthread_cleanup_pop(0);
	return how;
}

int main(void)
{
	pthread_t threads[6];
	void *value;

	assert(!pthread_key_create(&first, destroy_first) && !pthread_key_create(&second, destroy_second));
	assert(!sem_init(&ready, 0, 0));
	for (int i = 0; i < 2; i++) {
		assert(!pthread_create(&threads[i], NULL, returns, NULL));
		assert(!pthread_create(&threads[2 + i], NULL, exits, NULL));
		assert(!pthread_create(&threads[4 + i], NULL, is_cancelled, i ? &ready : NULL));
	}
	sem_wait(&ready);
	sem_wait(&ready);
	usleep(1000);
	assert(!pthread_cancel(threads[4]) && !pthread_cancel(threads[5]));
	for (int i = 0; i < 6; i++) {
		assert(!pthread_join(threads[i], &value));
		assert(value == (i < 2 ? NULL : i < 4 ? (void *)5 : PTHREAD_CANCELED));
	}
	assert(firsts == 6 && seconds == 6 + again && again >= 6 && cleanups == 4);
	printf("%d %d\n", seconds, again);
	abort();
}
