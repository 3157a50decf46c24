// Two threads count, and may lose what the other one counted.
// ENDS: exit 0
// CAUSE kind=atomicity-violation variable=counter
// RUNS pass:
#include <pthread.h>
#include <stdlib.h>

static volatile int counter;

static void *add(void *arg)
{
	for (int i = 0; i < 3; i++)
		counter = counter + 1;
	return arg;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, add, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (counter != 6)
		abort();
	return 0;
}
