// A thread waits for another by a plain variable: in an eager replay it has the right to
// run, and the other never comes to set it.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int ready;

static void *sets(void *unused)
{
	getppid();
	ready = 1;
	return unused;
}

static void await(void)
{
	while (!ready)
		;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sets, NULL);
	await();
	pthread_join(thread, NULL);
	abort();
}
