/* A handler that changes a width between two reads of it. The timer counts what the
 * process computes, so it does not come before the first. */
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

	signal(SIGVTALRM, changed);
	setitimer(ITIMER_VIRTUAL, &soon, NULL);
	before = width;
	for (volatile long i = 0; width == before && i < 60000000; i++)
		;
	after = width;
	getppid();
	if (width != 40)
		getuid();
	return before == after ? 0 : 3;
}
