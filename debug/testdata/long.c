// A loop of many iterations without an event, which fails in the last one, while other threads wait.
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { iterations = 3000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
volatile long sum;
char value = 1;

static void *waits(void *p)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return p;
}

int main(void)
{
	char *volatile from[2] = { &value, NULL };

	for (int i = 0; i < 3; i++) {
		pthread_t t;

		pthread_create(&t, NULL, waits, NULL);
	}
	usleep(200000); // the other threads have begun to wait: none runs in the loop
	for (long i = 1; i <= iterations; i++)
		sum += i ^ *from[i == iterations];
	return 0;
}
