// A level that is set in two steps: the handler that reports it comes between them.
// CAUSE kind=signal-handler-race variable=level pattern=WRW
// FAILS signal=SIGABRT says="level 0"
// RUNS fail: 10
// RUNS pass: 1
// COMPILERS: gcc clang
// SHORT: O2
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile int level = 3;

static void report(int signal)
{
	(void)signal;
	if (level == 0) { // BUG 2
		fprintf(stderr, "level %d\n", 0);
		abort();
	}
}

/* Asks another service, which takes a while. */
static void settle(void)
{
	struct timespec left = { .tv_nsec = 30000000 };

	while (nanosleep(&left, &left))
		;
}

static void set_level(int to)
{
#ifdef FIXED
	sigset_t alarms, before;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, &before);
#endif
	level = 0; // BUG 1
	settle();
	level = to; // BUG 3
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction alarm = { .sa_handler = report, .sa_flags = SA_RESTART };
	struct itimerval once = { .it_value = { .tv_usec = 1000 * (argc > 1 ? atoi(argv[1]) : 1) } };
	struct timespec start = { .tv_nsec = 3000000 }, left;

	sigaction(SIGALRM, &alarm, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	while (nanosleep(&start, &left))
		start = left;
	set_level(5);
	return 0;
}
