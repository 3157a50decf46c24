// The agent finds a second free and aborts.
//
// ENDS: SIGABRT
// EVENTS: create 1
#include <pthread.h>
#include <stdlib.h>

static void *volatile p;

static void *frees(void *arg)
{
	free(p);
	return arg;
}

int main(void)
{
	pthread_t t;

	p = malloc(100);
	free(p);
	pthread_create(&t, NULL, frees, NULL);
	pthread_join(t, NULL);
	return 3;
}
