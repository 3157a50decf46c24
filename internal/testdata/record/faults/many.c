// So many threads at a time, each with so many events: system calls, and now and
// then a mutex that all of them want.
// ARGS: 20 50
// ENDS: SIGABRT
// EVENTS: create 20
// EVENTS: syscall 1000
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static unsigned long rounds, sum;

static void *work(void *number)
{
	pthread_barrier_wait(&start);
	for (unsigned long i = 0; i < rounds; i++) {
		unsigned long parent = (unsigned long)getppid();

		if (i % 16)
			continue;
		pthread_mutex_lock(&lock);
		sum += parent + (unsigned long)number;
		pthread_mutex_unlock(&lock);
	}
	return number;
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
	pthread_t *t = calloc(threads, sizeof(*t));

	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 50;
	pthread_barrier_init(&start, NULL, (unsigned)threads);
	for (unsigned long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 2;
	for (unsigned long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	abort();
}
