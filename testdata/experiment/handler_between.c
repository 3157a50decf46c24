/* A handler that changes a width between two reads of it. */
// ENDS: SIGABRT
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int width = 80;
static volatile long spins;

static void changed(int signal)
{
	(void)signal;
	width = 40;
}

int main(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	char line[80];
	int columns;

	signal(SIGALRM, changed);
	setitimer(ITIMER_REAL, &soon, NULL);
	columns = width;
	while (width == columns && spins < 2000000000)
		spins++;
	getppid();
	assert(snprintf(line, sizeof(line), "%*d", columns - 1, width) < width);
	getppid();
	return 0;
}
