// A thread whose accesses are interrupted by another's signals: the handler's accesses are points of
// the thread that it runs on.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int done, handled;
static long sum, inside;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void handler(int signal)
{
	inside += signal;
	atomic_fetch_add(&handled, 1);
}

static void *works(void *argument)
{
	while (!atomic_load(&handled))
		sched_yield();
	for (int i = 0; i < 400; i++) {
		for (int j = 0; j < 20; j++)
			sum += i ^ j;
		pthread_mutex_lock(&mutex);
		sum ^= 1;
		pthread_mutex_unlock(&mutex);
	}
	pthread_mutex_lock(&mutex);
	atomic_store(&done, 1);
	pthread_mutex_unlock(&mutex);
	return argument;
}

int main(void)
{
	pthread_t t;
	int over = 0;

	signal(SIGUSR1, handler);
	pthread_create(&t, NULL, works, NULL);
	for (int i = 0; i < 60 && !over; i++) {
		pthread_kill(t, SIGUSR1);
		sched_yield();
		pthread_mutex_lock(&mutex);
		over = atomic_load(&done);
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(t, NULL);
	if (!handled || inside != (long)handled * SIGUSR1)
		exit(1);
	abort();
}
