// A thread crashes while others compute, without an event: where they were is
// told by their registers alone.
// ENDS: SIGSEGV
// EVENTS: signal 5
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile unsigned long results[2];
static volatile sig_atomic_t ticks;
static int *volatile nowhere;

static void on_timer(int signal)
{
	(void)signal;
	ticks++;
}

__attribute__((noreturn)) static void *compute(void *arg)
{
	volatile unsigned long *result = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (unsigned long i = 0;; i++)
		*result = *result * 0x9e3779b97f4a7c15ul + i;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	pthread_t threads[2];

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, compute, (void *)&results[i]);
	setitimer(ITIMER_REAL, &often, NULL);
	while (ticks < 5)
		pause();
	*nowhere = 1;
	return 0;
}
