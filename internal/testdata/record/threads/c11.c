// C11's threads: create, join, detach, exit, specific values.
// ENDS: SIGABRT
// EVENTS: create 9
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static tss_t key;
static mtx_t lock;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static int destroyed, finished, initialised;

static void destroy(void *value)
{
	mtx_lock(&lock);
	destroyed++;
	mtx_unlock(&lock);
	free(value);
}

static void initialise(void)
{
	initialised++;
}

static int work(void *number)
{
	call_once(&once, initialise);
	tss_set(key, malloc(33));
	mtx_lock(&lock);
	finished++;
	cnd_broadcast(&changed);
	mtx_unlock(&lock);
	if ((long)number % 2)
		thrd_exit(-(int)(long)number);
	return (int)(long)number;
}

int main(void)
{
	thrd_t threads[8], detached;
	int value;

	assert(tss_create(&key, destroy) == thrd_success && mtx_init(&lock, mtx_plain) == thrd_success &&
	       cnd_init(&changed) == thrd_success);
	for (long i = 0; i < 8; i++)
		assert(thrd_create(&threads[i], work, (void *)i) == thrd_success);
	assert(thrd_create(&detached, work, (void *)100) == thrd_success && thrd_detach(detached) == thrd_success);
	mtx_lock(&lock);
	while (finished < 9)
		cnd_wait(&changed, &lock);
	mtx_unlock(&lock);
	for (int i = 0; i < 8; i++)
		assert(thrd_join(threads[i], &value) == thrd_success && value == (i % 2 ? -i : i));
	assert(initialised == 1 && destroyed >= 8);
	printf("%d\n", finished);
	abort();
}
