// A thousand threads at once.
// ENDS: SIGABRT
// EVENTS: create 1000
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int here, leave;
static int order[1000];

static void *wait_for_all(void *number)
{
	char *p = malloc(100);

	p[0] = (char)(long)number;
	pthread_mutex_lock(&lock);
	order[here++] = (int)(long)number;
	pthread_cond_broadcast(&changed);
	while (!leave)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return p;
}

int main(void)
{
	static pthread_t threads[1000];
	pthread_attr_t attr;
	void *value;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = 0; i < 1000; i++)
		assert(!pthread_create(&threads[i], &attr, wait_for_all, (void *)i));
	pthread_mutex_lock(&lock);
	while (here < 1000)
		pthread_cond_wait(&changed, &lock);
	leave = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 1000; i++) {
		assert(!pthread_join(threads[i], &value) && *(char *)value == (char)i);
		if (i % 2)
			free(value);
	}
	printf("last %d\n", order[999]);
	abort();
}
