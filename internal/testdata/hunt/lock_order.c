// Two locks that two threads take in different orders, for good.
// ENDS: exit 0
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int moved;

static void *back(void *arg)
{
	pthread_mutex_lock(&b);
	pthread_mutex_lock(&a);
	moved--;
	pthread_mutex_unlock(&a);
	pthread_mutex_unlock(&b);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, back, NULL);
	pthread_mutex_lock(&a);
	pthread_mutex_lock(&b);
	moved++;
	pthread_mutex_unlock(&b);
	pthread_mutex_unlock(&a);
	pthread_join(t, NULL);
	return 0;
}
