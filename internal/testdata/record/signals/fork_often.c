// A timer whose handler takes longer than the period while it is recorded: it
// makes a process and waits for it. The program itself must continue all the same.
// ENDS: exit 0
// EVENTS: signal 3
// EVENTS: fork 3
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long steps;
static volatile int children;

static void on_timer(int signal)
{
	pid_t child = fork();
	int status;

	(void)signal;
	if (child == 0)
		_exit(0);
	if (child > 0 && waitpid(child, &status, 0) == child)
		children++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (children < 3 || steps < 20000000)
		steps++;
	setitimer(ITIMER_REAL, &never, NULL);
	return 0;
}
