// SA_RESETHAND, SA_NODEFER and a stack for handlers that disarms itself, with
// timers that interrupt all of them.
// ENDS: SIGQUIT
// EVENTS: signal 40
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

static char own[65536];
static volatile unsigned long ticks, deep, deepest, resets, owned, raised, work;

static int on_own(const void *p)
{
	/* The compiler takes it for granted that no local is there. */
	__asm__("" : "+r"(p));
	return (const char *)p >= own && (const char *)p < own + sizeof(own);
}

static void on_timer(int signal)
{
	stack_t now;
	char here[512];

	memset(here, signal, sizeof(here));
	/* Whichever handler runs, the stack has disarmed itself; so this one is not
	 * on it if it interrupted another. */
	owned += (unsigned long)on_own(here);
	if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE))
		_exit(3);
	ticks++;
	for (int i = 0; i < 1000; i++)
		work += (unsigned long)i;
}

static void on_again(int signal)
{
	if (++deep > deepest)
		deepest = deep;
	if (deep < 4)
		raise(signal);
	for (int i = 0; i < 1000; i++)
		work += deep;
	deep--;
}

static void on_once(int signal)
{
	(void)signal;
	resets++;
}

int main(void)
{
	stack_t stack = { .ss_sp = own, .ss_size = sizeof(own), .ss_flags = (int)SS_AUTODISARM }, now;
	struct sigaction timer = { .sa_handler = on_timer, .sa_flags = SA_ONSTACK },
			 again = { .sa_handler = on_again, .sa_flags = SA_NODEFER },
			 once = { .sa_handler = on_once, .sa_flags = SA_RESETHAND }, old;
	struct itimerval often = { { 0, 1500 }, { 0, 1500 } };

	if (sigaltstack(&stack, NULL))
		return 1;
	sigaction(SIGALRM, &timer, NULL);
	sigaction(SIGUSR1, &again, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	/* On a busy machine one signal takes longer than the timer needs for the next,
	 * and all that are waited for may come before the first raise. */
	while (ticks < 20 || raised < 10) {
		raised++;
		raise(SIGUSR1);
		for (int i = 0; i < 100000; i++)
			work++;
		if (sigaltstack(NULL, &now) || now.ss_flags & SS_DISABLE || now.ss_sp != own)
			return 4;
	}
	/* Every tick may have come while a handler ran: the timer's signal waits for
	 * the raise to end, and then comes on top of its handler. */
	while (!owned)
		work++;
	if (deepest != 4)
		return 5;
	sigaction(SIGQUIT, &once, NULL);
	raise(SIGQUIT);
	sigaction(SIGQUIT, NULL, &old);
	if (resets != 1 || old.sa_handler != SIG_DFL)
		return 6;
	raise(SIGQUIT);
	return 7;
}
