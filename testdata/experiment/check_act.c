/* A check and an act in two sections of one lock: another thread takes what was
 * there in between. The sleeps make the order that fails. */
// ENDS: SIGABRT
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items = 1;

static void *taker(void *arg)
{
	usleep(50000);
	pthread_mutex_lock(&lock);
	if (items > 0)
		items--;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(void)
{
	pthread_t t;
	int there;

	pthread_create(&t, NULL, taker, NULL);
	pthread_mutex_lock(&lock);
	there = items > 0;
	pthread_mutex_unlock(&lock);
	usleep(200000);
	pthread_mutex_lock(&lock);
	if (there) {
		assert(items > 0);
		items--;
	}
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	return 0;
}
