// A branch that depends on a race (Lee et al., ECOOP 2014, figure 3 A): a store
// between two reads of another thread decides which call it makes.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int closing, closed;

static pthread_barrier_t start;

static void work(int amount)
{
	for (volatile int i = 0; i < amount * 10000; i++)
		;
}

static void *closes(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	getppid();
	work(300);
	closing = 1;
	work(100);
	closed = 1;
	getgid();
	return NULL;
}

static void *uses(void *argument)
{
	int open;

	(void)argument;
	pthread_barrier_wait(&start);
	getppid();
	work(100);
	open = !closing;
	work(600);
	if (open && closed)
		abort(); /* it was open, and is closed */
	if (open)
		getuid();
	else
		geteuid();
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, closes, NULL);
	pthread_create(&threads[1], NULL, uses, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
