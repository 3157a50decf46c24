// A loop of instructions that are shorter than a jump, each of which signals
// interrupt: where a handler returns to is often right after the next place.
// ENDS: exit 0
// EVENTS: signal 100
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

static volatile unsigned long handled;

static void on_timer(int signal)
{
	(void)signal;
	handled++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 1500 }, { 0, 1500 } }, never = { { 0, 0 }, { 0, 0 } };
	unsigned long a = 1, b = 1;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 100)
		__asm__ volatile("addq %0, %1\n\timulq %1, %0\n\taddq %0, %1\n\timulq %1, %0\n\taddq %0, %1\n\timulq %1, %0"
				 : "+r"(a), "+r"(b));
	setitimer(ITIMER_REAL, &never, NULL);
	return 0;
}
