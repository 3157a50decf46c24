// A pointer is taken away between the look at it and its use: once in thousands of
// runs.
// FLAGS: -O1
// ENDS: SIGSEGV
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 50

struct session {
	int requests;
};

static struct session first = { 0 };
static struct session *volatile current = &first;

static pthread_barrier_t start;

static void work(int amount)
{
	for (volatile int i = 0; i < amount; i++)
		;
}

static void *renews(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		getppid();
		work(1000 + 100 * i);
		current = NULL;
		work(100);
		current = &first;
	}
	return NULL;
}

static void *requests(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		getuid();
		work(1100 + 90 * i);
		if (current) {
			work(5000);
			current->requests++;
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, renews, NULL);
	pthread_create(&threads[1], NULL, requests, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
