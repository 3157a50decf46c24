// A ring buffer whose writer moves its end before it stores the value.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

enum { SIZE = 8, VALUES = 300 };
static volatile unsigned end, begin;
static volatile int ring[SIZE];
static volatile long sum;

static void *writes(void *argument)
{
	for (int i = 1; i <= VALUES; i++) {
		while (end - begin == SIZE)
			;
		end++; /* BUG */
		ring[(end - 1) % SIZE] = i;
	}
	return argument;
}

static void *reads(void *argument)
{
	for (int i = 1; i <= VALUES; i++) {
		while (end == begin)
			;
		int value = ring[begin % SIZE];
		begin++;
		if (value != i)
			abort();
		sum += value;
	}
	return argument;
}

int main(void)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, writes, NULL);
	pthread_create(&threads[1], NULL, reads, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
