// Threads that allocate, return values and are joined, in another order than
// they end.
// ENDS: SIGABRT
// EVENTS: create 12
// EVENTS: join 12
// EVENTS: exit 12
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept[12];

static void *work(void *number)
{
	long n = (long)number;
	char *last = NULL;

	for (int i = 0; i < 2000; i++) {
		free(last);
		last = malloc(16 + (size_t)(i * 37 + n * 101) % 4000);
		memset(last, (int)n, 16);
	}
	kept[n] = last;
	return (void *)(n * 3);
}

int main(void)
{
	pthread_t threads[12];
	void *value;
	long sum = 0;

	for (long i = 0; i < 12; i++)
		assert(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 11; i >= 0; i--) {
		assert(!pthread_join(threads[i], &value));
		sum += (long)value;
	}
	for (int i = 0; i < 12; i++)
		assert(kept[i] && kept[i][0] == i);
	printf("sum %ld\n", sum);
	abort();
}
