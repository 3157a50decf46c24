// A log whose buffer a signal's handler replaces while a line is written to it: the
// line ends up in the buffer that was freed.
// CAUSE kind=signal-handler-race|use-after-free variable=buffer|@OBJECT pattern=RWR|
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 12
// RUNS pass: 1
// SHORT: O0
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { SIZE = 64 };

static char *volatile buffer;

static void rotate(int signal)
{
	char *old = buffer;

	(void)signal;
	buffer = NULL; // BUG 2
	free(old);
}

/* Asks another service for the time, which takes a while. */
static void format_line(void)
{
	struct timespec left = { .tv_nsec = 30000000 };

	while (nanosleep(&left, &left))
		;
}

static void add_line(void)
{
#ifdef FIXED
	sigset_t rotates, before;

	sigemptyset(&rotates);
	sigaddset(&rotates, SIGALRM);
	sigprocmask(SIG_BLOCK, &rotates, &before);
#endif
	if (buffer) { // BUG 1
		format_line();
		memset(buffer, 'x', 8); // BUG 3
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction alarm = { .sa_handler = rotate, .sa_flags = SA_RESTART };
	struct itimerval once = { .it_value = { .tv_usec = 1000 * (argc > 1 ? atoi(argv[1]) : 1) } };
	struct timespec start = { .tv_nsec = 4000000 }, left;

	buffer = malloc(SIZE); // OBJECT
	sigaction(SIGALRM, &alarm, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	while (nanosleep(&start, &left))
		start = left;
	add_line();
	return 0;
}
