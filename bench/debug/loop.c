/* loop THREADS MEGABYTES: that many threads wait and so much memory is written, while the main thread runs through a loop of
 * 300 million iterations without an event. It fails in the last one; loop THREADS MEGABYTES after: after the loop. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned long sum;

static void *waits(void *p)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return p;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0;
	size_t bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 0) << 20;
	char *all = malloc(bytes + 1);

	memset(all, 1, bytes + 1);
	for (int i = 0; i < threads; i++) {
		pthread_t t;

		pthread_create(&t, NULL, waits, NULL);
	}
	sleep(1); /* the other threads have begun to wait: none runs in the loop */
	char *volatile from[2] = { all, argc > 3 ? all : NULL };

	for (unsigned long i = 0; i < 300000000; i++)
		sum += i ^ (unsigned char)*from[i == 299999999];
	*(volatile char *)(sum ? NULL : all) = 0;
	return 0;
}
