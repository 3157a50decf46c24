/* Two threads take jobs under a lock. The last job clears the pointer that is used when both have ended. */
#include "bench.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long next, rounds = 10;
static unsigned long results, *result = &results;

static void finish(long job)
{
	if (job == rounds - 1)
		result = NULL;
}

static void *work(void *unused)
{
	for (;;) {
		long job;
		unsigned long sum;

		pthread_mutex_lock(&lock);
		job = next++;
		pthread_mutex_unlock(&lock);
		if (job >= rounds)
			return unused;
		sum = compute((uint64_t)job + 1);
		pthread_mutex_lock(&lock);
		if (result)
			*result += sum;
		finish(job);
		pthread_mutex_unlock(&lock);
		note(job, sum);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc > 1)
		rounds = atol(argv[1]);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%lu\n", *result);
	return 0;
}
