/* A counter read and written in two sections of one lock: an update is lost. */
// ENDS: exit 3
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

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

static void *deposits(void *pause)
{
	int value = get();

	if (pause)
		usleep(200000);
	put(value + 10);
	return NULL;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, NULL, deposits, &a);
	usleep(50000);
	pthread_create(&b, NULL, deposits, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return balance == 20 ? 0 : 3;
}
