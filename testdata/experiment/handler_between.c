/* A handler that changes a width between two reads of it. */
// ENDS: exit 3
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int width = 80;

static void changed(int signal)
{
	(void)signal;
	width = 40;
}

int main(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 5000 } };
	int before, after;

	signal(SIGALRM, changed);
	setitimer(ITIMER_REAL, &soon, NULL);
	before = width;
	for (volatile long i = 0; width == before && i < 60000000; i++)
		;
	after = width;
	getppid();
	if (width != 40)
		getuid();
	return before == after ? 0 : 3;
}
