/* A check and an act in two sections of one lock: another thread takes a thing that was
 * there in between. The pipes make the order that fails. */
// ENDS: SIGABRT
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items = 1, checked[2], taken[2];

static void *taker(void *arg)
{
	char c;

	assert(read(checked[0], &c, 1) == 1);
	pthread_mutex_lock(&lock);
	if (items > 0)
		items--;
	pthread_mutex_unlock(&lock);
	assert(write(taken[1], "", 1) == 1);
	return arg;
}

int main(void)
{
	pthread_t t;
	int there;
	char c;

	assert(!pipe(checked) && !pipe(taken));
	pthread_create(&t, NULL, taker, NULL);
	pthread_mutex_lock(&lock);
	there = items > 0;
	pthread_mutex_unlock(&lock);
	assert(write(checked[1], "", 1) == 1 && read(taken[0], &c, 1) == 1);
	pthread_mutex_lock(&lock);
	if (there) {
		assert(items > 0);
		items--;
	}
	pthread_mutex_unlock(&lock);
	pthread_join(t, NULL);
	return 0;
}
