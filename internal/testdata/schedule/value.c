// A value that depends on a race (figure 3 B): an update of a counter is lost, and
// the counter is handed to the kernel.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUNDS 2

static volatile int served;

static pthread_barrier_t start;

static void work(int amount)
{
	for (volatile int i = 0; i < amount * 10000; i++)
		;
}

static void *serves(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		int now;

		getppid();
		now = served;
		work(200);
		served = now + 1;
		work(50);
		getpriority(PRIO_PROCESS, (id_t)(1000000 + served));
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, serves, NULL);
	pthread_create(&threads[1], NULL, serves, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	if (served != 2 * ROUNDS)
		abort();
	return 0;
}
