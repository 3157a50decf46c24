/* Two locks, taken in both orders. The one who finds that nothing goes on any more
 * ends it, as a watchdog would. */
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static void *other(void *arg)
{
	pthread_mutex_lock(&b);
	usleep(100000);
	pthread_mutex_lock(&a);
	done++;
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}

static void *one(void *arg)
{
	pthread_mutex_lock(&a);
	usleep(100000);
	pthread_mutex_lock(&b);
	done++;
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	pthread_create(&t[0], NULL, one, NULL);
	pthread_create(&t[1], NULL, other, NULL);
	sleep(1);
	if (done != 2)
		abort();
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}
