// The process ends while a thread is in the middle of its accesses, and may be preempted there.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static long counter;
static atomic_long exact;

static void __attribute__((noinline)) inner(long n)
{
	counter += n;
	atomic_fetch_add(&exact, n);
}

static void *add(void *argument)
{
	for (int i = 0; i < 50; i++)
		inner(i);
	return argument;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, add, NULL);
	while (atomic_load(&exact) < 100)
		;
	abort();
}
