/* A consumer asserts that it has an element or that all is done. The bug is the `if` around the wait: another consumer may have been
   faster. The flag done would have let the assertion pass, but only main's end sets it. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int count, done, ring[64];

static int get(void)
{
	int v = -1;
	pthread_mutex_lock(&m);
	if (count == 0 && !done)
		pthread_cond_wait(&more, &m);
	assert(count > 0 || done);
	if (count > 0)
		v = ring[--count];
	pthread_mutex_unlock(&m);
	return v;
}

static void *consume(void *sum)
{
	for (int v; (v = get()) >= 0; *(long *)sum += v)
		for (volatile int i = 0; i < 2500; i++)
			;
	return NULL;
}

int main(void)
{
	pthread_t t[3];
	long sum[3] = { 0 };
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, consume, &sum[i]);
	for (int i = 0; i < 30; i++) {
		pthread_mutex_lock(&m);
		ring[count++] = i;
		pthread_cond_broadcast(&more);
		pthread_mutex_unlock(&m);
		for (volatile int k = 0; k < 7000; k++)
			;
	}
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", sum[0] + sum[1] + sum[2]);
}
