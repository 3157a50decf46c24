// Three threads leave marks, first each in its own code and then in a handler of a
// signal, in an order that no event says. The calls around them are so long that
// the threads come past one before the next is over.
// FLAGS: -O1
// ENDS: exit 0
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MARKS 4
#define SLEEP 50000

char order[64];
volatile int at;
static __thread char own;

/* A point that the code counts: the recording library has it. */
extern void diagnose_point(void) __attribute__((weak));

__attribute__((noinline)) void mark(char who)
{
	if (diagnose_point)
		diagnose_point();
	order[at] = who;
	at = at + 1;
}

static void on_signal(int number)
{
	(void)number;
	usleep(SLEEP);
	for (int i = 0; i < MARKS; i++)
		mark(own - 'a' + 'A');
	usleep(SLEEP);
}

static void *leave(void *who)
{
	own = *(char *)who;
	usleep(SLEEP);
	for (int i = 0; i < MARKS; i++)
		mark(own);
	usleep(SLEEP);
	raise(SIGUSR1);
	return NULL;
}

int main(void)
{
	static char who[] = "abc";
	pthread_t threads[3];

	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, leave, &who[i]))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
