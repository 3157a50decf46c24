/* Two locks, taken in both orders: the pipes see to it that each thread has one.
 * Main finds that no thread continues any more and ends it, as a watchdog would. */
// ENDS: SIGABRT
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int has_a[2], has_b[2], both[2];
static volatile int done;

static void *one(void *arg)
{
	char c;

	pthread_mutex_lock(&a);
	assert(write(has_a[1], "", 1) == 1 && read(has_b[0], &c, 1) == 1 && write(both[1], "", 1) == 1);
	pthread_mutex_lock(&b);
	done++;
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return arg;
}

static void *other(void *arg)
{
	char c;

	pthread_mutex_lock(&b);
	assert(write(has_b[1], "", 1) == 1 && read(has_a[0], &c, 1) == 1 && write(both[1], "", 1) == 1);
	pthread_mutex_lock(&a);
	done++;
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}

int main(void)
{
	pthread_t t[2];
	char c;

	assert(!pipe(has_a) && !pipe(has_b) && !pipe(both));
	pthread_create(&t[0], NULL, one, NULL);
	pthread_create(&t[1], NULL, other, NULL);
	assert(read(both[0], &c, 1) == 1 && read(both[0], &c, 1) == 1);
	usleep(100000);
	if (done != 2)
		abort();
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}
