// A handler that interrupts a load, a change and a store of a counter: what it
// added is lost. It fails once an update was lost in the middle of the three.
// ENDS: SIGABRT
// EVENTS: signal 1
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile unsigned long counter;
static volatile unsigned long own, handled;

static void on_timer(int signal)
{
	(void)signal;
	counter++;
	handled++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 1500 }, { 0, 1500 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;) {
		unsigned long seen = counter;

		for (int i = 0; i < 20; i++)
			__asm__ volatile("" ::: "memory");
		counter = seen + 1;
		own++;
		seen = handled;
		if (counter != own + seen && seen == handled)
			abort();
	}
}
