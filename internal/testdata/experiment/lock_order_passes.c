/* Two locks, taken in both orders, but one thread after the other. */
// ENDS: exit 0
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int done, over[2];

static void *one(void *arg)
{
	pthread_mutex_lock(&a);
	getppid();
	pthread_mutex_lock(&b);
	done++;
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	assert(write(over[1], "", 1) == 1);
	return arg;
}

static void *other(void *arg)
{
	char c;

	assert(read(over[0], &c, 1) == 1);
	pthread_mutex_lock(&b);
	getppid();
	pthread_mutex_lock(&a);
	done++;
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	assert(!pipe(over));
	pthread_create(&t[0], NULL, one, NULL);
	pthread_create(&t[1], NULL, other, NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return done == 2 ? 0 : 3;
}
