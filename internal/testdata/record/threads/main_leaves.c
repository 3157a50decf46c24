// The main thread leaves by pthread_exit while others run; one of them joins it.
// ENDS: SIGABRT
// EVENTS: exit 4
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *work(void *unused)
{
	pthread_mutex_lock(&lock);
	done++;
	pthread_mutex_unlock(&lock);
	free(malloc(10));
	return unused;
}

static void *joiner(void *others)
{
	void *value;

	assert(!pthread_join(first, &value) && value == (void *)77);
	for (int i = 0; i < 3; i++)
		assert(!pthread_join(((pthread_t *)others)[i], NULL));
	printf("%d are done\n", done);
	abort();
}

int main(void)
{
	static pthread_t threads[3];
	pthread_t last;

	first = pthread_self();
	for (int i = 0; i < 3; i++)
		assert(!pthread_create(&threads[i], NULL, work, NULL));
	assert(!pthread_create(&last, NULL, joiner, threads));
	pthread_exit((void *)77);
}
