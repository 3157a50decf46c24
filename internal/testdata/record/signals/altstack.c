// A handler on a stack of its own, signals that come while it is in calls there,
// nested ones, and the end: a stack overflow whose handler reports and aborts.
// ENDS: SIGABRT
// EVENTS: signal 60
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static char own[65536];
static volatile unsigned long ticks, usr, depth;

static int on_own(const void *p)
{
	return (const char *)p >= own && (const char *)p < own + sizeof(own);
}

static void on_usr(int signal, siginfo_t *info, void *context)
{
	char here[64];

	(void)signal;
	(void)context;
	memset(here, (int)usr, sizeof(here));
	if (!on_own(here) || info->si_pid != getpid())
		_exit(3);
	usr++;
}

static void on_timer(int signal)
{
	char here[4096];

	(void)signal;
	memset(here, (int)ticks, sizeof(here));
	if (!on_own(here))
		_exit(4);
	kill(getpid(), SIGUSR1);
	for (unsigned i = 0; i < sizeof(here); i++)
		if (here[i] != (char)ticks)
			_exit(5);
	ticks++;
}

static void on_overflow(int signal, siginfo_t *info, void *context)
{
	char text[64];
	int n;

	(void)context;
	n = snprintf(text, sizeof(text), "signal %d, code %d, %lu ticks\n", signal, info->si_code, ticks);
	write(1, text, (size_t)n);
	abort();
}

static unsigned long overflow(unsigned long n)
{
	volatile char room[4096];

	room[n % sizeof(room)] = (char)n;
	if (!++depth)
		return 0;
	return overflow(n + 1) + (unsigned long)room[0];
}

int main(void)
{
	stack_t stack = { .ss_sp = own, .ss_size = sizeof(own) };
	struct sigaction timer = { .sa_handler = on_timer, .sa_flags = SA_ONSTACK },
			 user = { .sa_sigaction = on_usr, .sa_flags = SA_ONSTACK | SA_SIGINFO },
			 fault = { .sa_sigaction = on_overflow, .sa_flags = SA_ONSTACK | SA_SIGINFO };
	struct itimerval often = { { 0, 1500 }, { 0, 1500 } }, off = { 0 };

	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &timer, NULL);
	sigaction(SIGUSR1, &user, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (ticks < 30)
		pause();
	setitimer(ITIMER_REAL, &off, NULL);
	if (usr != ticks)
		return 6;
	return (int)overflow(1);
}
