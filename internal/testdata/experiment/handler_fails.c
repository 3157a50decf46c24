/* A handler that finds what the program is about to set, not set, and ends it. */
// ENDS: SIGABRT
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int ready;

static void look(int signal)
{
	(void)signal;
	if (!ready)
		abort();
}

int main(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 5000 } };

	signal(SIGVTALRM, look);
	setitimer(ITIMER_VIRTUAL, &soon, NULL);
	for (volatile long i = 0; i < 60000000; i++)
		;
	ready = 1;
	getppid();
	return 0;
}
