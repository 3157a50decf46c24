// A thread that leaves marks is interrupted between them by a signal of another, at
// any instruction; a third leaves its own next to it.
// FLAGS: -O1
// ENDS: exit 0
// EVENTS: signal 1
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define MARKS 4
#define SLEEP 50000

char order[64];
volatile int at;
static volatile int handled;

__attribute__((noinline)) void mark(char who)
{
	order[at] = who;
	at = at + 1;
	/* Where a signal came is told by registers: none of them says how many marks
	 * others have left. */
	__asm__ volatile("xorl %%eax, %%eax; xorl %%ecx, %%ecx; xorl %%edx, %%edx" : : : "eax", "ecx", "edx", "cc");
}

static void on_signal(int number)
{
	(void)number;
	handled = 1;
}

/* One mark, then a signal at some instruction of the loop, then another mark. */
static void *computes(void *unused)
{
	(void)unused;
	usleep(SLEEP);
	for (int i = 0; i < MARKS; i++) {
		mark('a');
		if (i == 1)
			while (!handled)
				;
	}
	usleep(SLEEP);
	return NULL;
}

static void *leaves(void *unused)
{
	(void)unused;
	usleep(SLEEP);
	for (int i = 0; i < MARKS; i++)
		mark('b');
	usleep(8 * SLEEP);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	signal(SIGUSR1, on_signal);
	pthread_create(&threads[0], NULL, computes, NULL);
	pthread_create(&threads[1], NULL, leaves, NULL);
	usleep(4 * SLEEP); /* long after the first two marks */
	pthread_kill(threads[0], SIGUSR1);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
