// A race in a window that is too long to be stepped: each thread computes some
// million instructions over memory of its own before it looks at what the other one
// says, and continues with some ten million more.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST 150
#define TURNS 3000
#define WORDS 16384

static volatile int looked, closing, closed;

static unsigned table[2][WORDS];

static pthread_barrier_t start;

static void compute(unsigned *own, unsigned turn)
{
	for (unsigned i = 0, at = turn; i < 1000; i++, at = at * 1103515245 + 12345)
		own[(at >> 16) % WORDS] += at;
}

static void *closes(void *argument)
{
	(void)argument;
	pthread_barrier_wait(&start);
	getppid();
	for (unsigned i = 0; i < FIRST; i++)
		compute(table[0], i);
	for (unsigned i = 0; i < TURNS && !looked; i++)
		compute(table[0], i);
	closing = 1;
	compute(table[0], 0);
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
	for (unsigned i = 0; i < FIRST; i++)
		compute(table[1], i);
	open = !closing;
	looked = 1;
	for (unsigned i = 0; i < TURNS && !closed; i++)
		compute(table[1], i);
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
