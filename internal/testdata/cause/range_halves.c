// A range of a ring of samples that is read in two halves: the timer's handler moves
// the whole range on while the first half is being looked at.
// CAUSE kind=signal-handler-race variable=range.first,range.last pattern="two variables"
// FAILS signal=SIGABRT says="samples"
// RUNS fail: 12
// RUNS pass: 1
// COMPILERS: gcc clang
// SHORT: O2
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { LENGTH = 10 };

static volatile struct {
	long first, last;
} range = { 0, LENGTH };

static void next_block(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	range.first += LENGTH; // BUG 2
	range.last += LENGTH;  // BUG 3
}

/* Asks another service, which takes a while. */
static void weigh(void)
{
	struct timespec left = { .tv_nsec = 30000000 };

	while (nanosleep(&left, &left))
		;
}

static void look_at_block(void)
{
#ifdef FIXED
	sigset_t timer, before;

	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	sigprocmask(SIG_BLOCK, &timer, &before);
#endif
	long first = range.first; // BUG 1

	weigh();

	long last = range.last; // BUG 4

	if (last - first != LENGTH) {
		fprintf(stderr, "%ld samples\n", last - first);
		abort();
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	struct sigaction timer = { .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerval once = { .it_value = { .tv_usec = 1000 * (argc > 1 ? atoi(argv[1]) : 1) } };
	struct timespec start = { .tv_nsec = 4000000 }, left;

	timer.sa_sigaction = next_block;
	sigaction(SIGALRM, &timer, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	while (nanosleep(&start, &left))
		start = left;
	look_at_block();
	return 0;
}
