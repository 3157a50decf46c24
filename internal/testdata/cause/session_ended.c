// A server that looks whether there is a session, and then uses it: the third tick of
// the timer ends the session in between. The ticks before change nothing.
// CAUSE kind=signal-handler-race variable=session pattern=RWR
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 10
// RUNS pass: 1
// COMPILERS: gcc clang
// SHORT: O2
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct session {
	int id;
	long served;
};

static struct session first = { 7, 0 };
static struct session *volatile session = &first;
static volatile int ticks;

static void on_tick(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_code == SI_TIMER && ++ticks == 3)
		session = NULL; // BUG 2
}

/* Asks another service, which takes a while. */
static void answer(void)
{
	struct timespec left = { .tv_nsec = 30000000 };

	while (nanosleep(&left, &left))
		;
}

static void serve(void)
{
#ifdef FIXED
	sigset_t tick, before;

	sigemptyset(&tick);
	sigaddset(&tick, SIGUSR1);
	sigprocmask(SIG_BLOCK, &tick, &before);
#endif
	if (session) { // BUG 1
		answer();
		session->served++; // BUG 3
	}
#ifdef FIXED
	sigprocmask(SIG_SETMASK, &before, NULL);
#endif
}

int main(int argc, char **argv)
{
	long every = 1000000L * (argc > 1 ? atoi(argv[1]) : 1);
	struct itimerspec when = { { 0, every }, { 0, every } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct sigaction tick = { .sa_flags = SA_SIGINFO | SA_RESTART };
	struct timespec start = { .tv_nsec = 22000000 }, left;
	timer_t timer;

	tick.sa_sigaction = on_tick;
	sigaction(SIGUSR1, &tick, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &when, NULL);
	while (nanosleep(&start, &left))
		start = left;
	serve();
	timer_delete(timer);
	return 0;
}
