// A timer interrupts a loop, the program signals itself, and a bad store is repaired; then the program fails.
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

volatile int usr, alarms, repaired;
volatile unsigned long turns;
char *page;

static void on_usr(int s)
{
	usr++;
}

static void on_alarm(int s)
{
	alarms++;
}

static void on_fault(int s, siginfo_t *info, void *context)
{
	repaired++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int main(void)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESETHAND };
	struct itimerval soon = { .it_value = { .tv_usec = 2000 } };

	signal(SIGUSR1, on_usr);
	signal(SIGALRM, on_alarm);
	sigaction(SIGSEGV, &fault, 0);
	kill(getpid(), SIGUSR1);
	setitimer(ITIMER_REAL, &soon, 0);
	while (!alarms)
		turns++;
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*page = 1;
	kill(getpid(), SIGUSR1);
	*(volatile int *)0 = usr;
	return 0;
}
