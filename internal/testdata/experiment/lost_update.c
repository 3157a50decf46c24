/* A counter read and written in two sections of one lock: an update is lost. The
 * pipes make the order that fails. */
// ENDS: exit 3
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance, seen[2], done[2];

static int get(void)
{
	int value;

	pthread_mutex_lock(&lock);
	value = balance;
	pthread_mutex_unlock(&lock);
	return value;
}

static void put(int value)
{
	pthread_mutex_lock(&lock);
	balance = value;
	pthread_mutex_unlock(&lock);
}

static void *slow(void *arg)
{
	int value = get();
	char c;

	assert(write(seen[1], "", 1) == 1 && read(done[0], &c, 1) == 1);
	put(value + 10);
	return arg;
}

static void *quick(void *arg)
{
	char c;

	assert(read(seen[0], &c, 1) == 1);
	put(get() + 10);
	assert(write(done[1], "", 1) == 1);
	return arg;
}

int main(void)
{
	pthread_t a, b;

	assert(!pipe(seen) && !pipe(done));
	pthread_create(&a, NULL, slow, NULL);
	pthread_create(&b, NULL, quick, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return balance == 20 ? 0 : 3;
}
