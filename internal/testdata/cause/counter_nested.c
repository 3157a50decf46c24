// Two signals whose handlers count the same thing: the one interrupts the other between
// its read and its write.
// CAUSE kind=signal-handler-race variable=events pattern=RWW
// FAILS signal=SIGABRT says="events"
// RUNS fail: 20
// RUNS pass: 4
// SHORT: O2
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile int events, handled;

/* Asks another service, which takes a while. */
static void classify(void)
{
	struct timespec left = { .tv_nsec = 30000000 };

	while (nanosleep(&left, &left))
		;
}

static void on_request(int signal)
{
	(void)signal;
	int n = events; // BUG 1

	classify();
	events = n + 1; // BUG 3
	handled++;
}

static void on_timer(int signal)
{
	(void)signal;
	events = events + 1; // BUG 2
	handled++;
}

int main(int argc, char **argv)
{
	struct sigaction request = { .sa_handler = on_request, .sa_flags = SA_RESTART }, timer = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval once = { .it_value = { .tv_usec = 1000 * (argc > 1 ? atoi(argv[1]) : 1) } };
	struct timespec start = { .tv_nsec = 10000000 }, left;

#ifdef FIXED
	sigaddset(&request.sa_mask, SIGALRM);
#endif
	sigaction(SIGUSR1, &request, NULL);
	sigaction(SIGALRM, &timer, NULL);
	setitimer(ITIMER_REAL, &once, NULL);
	while (nanosleep(&start, &left))
		start = left;
	raise(SIGUSR1);
	if (events != handled) {
		fprintf(stderr, "%d events of %d\n", events, handled);
		abort();
	}
	return 0;
}
