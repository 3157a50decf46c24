// rdtsc in handlers and in what they interrupt.
// ENDS: exit 4
// EVENTS: signal 20
// EVENTS: tsc 22
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include <x86intrin.h>

static volatile unsigned long handled, last, sum, work;

static void on_timer(int signal)
{
	unsigned int processor;

	(void)signal;
	last = __rdtscp(&processor) + processor;
	handled++;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 20) {
		unsigned long from = __rdtsc();

		for (int i = 0; i < 300000; i++)
			work += (unsigned long)i ^ last;
		sum = sum * 31 + __rdtsc() - from;
	}
	return 4;
}
