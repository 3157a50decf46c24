// A crash in a handler that an asynchronous signal brought about.
//
// ENDS: SIGSEGV
// EVENTS: signal 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long turns;
static char *volatile nothing;

static void crash(int signal)
{
	(void)signal;
	*nothing = (char)turns;
}

int main(void)
{
	struct itimerval soon = { { 0, 0 }, { 0, 20000 } };

	signal(SIGALRM, crash);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		turns += turns * 3 + 1;
}
