// Two threads add to a counter that nothing protects; each is alone, unless it is preempted between
// its read and its write. The event before that is the one where it yields, and the one after it
// comes late enough for both to be between theirs.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

long counter;
atomic_long exact;

static void *add(void *argument)
{
	struct timespec t = { .tv_nsec = 20000000 };

	sched_yield();
	for (int i = 0; i < 10; i++) {
		counter++;
		atomic_fetch_add(&exact, 1);
	}
	nanosleep(&t, NULL);
	return argument;
}

int main(void)
{
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, add, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
