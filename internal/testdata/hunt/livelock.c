// Two threads that let each other go first, for ever.
// ENDS: exit 0
#include <pthread.h>
#include <sched.h>

static void *polite(void *arg)
{
	for (;;)
		sched_yield();
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, polite, NULL);
	polite(NULL);
	return 0;
}
