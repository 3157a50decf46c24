// Signals of a timer come while threads access global variables, in the handler, too;
// a child process does so as well.
// ENDS: exit 0
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;
static volatile long total, last;

static void tick(int signal)
{
	(void)signal;
	ticks++;
	last = total + 1;
}

static void *work(void *arg)
{
	while (ticks < 2) {
		long left = 200;

		for (int i = 0; i < 4; i++)
			total++;
		/* There are not too many points, and a replay finds a signal quickly here: it comes to
		   each instruction seldom. */
		__asm__ volatile("1: .rept 200\n\tnop\n\t.endr\n\tdecq %0\n\tjnz 1b" : "+r"(left) : : "cc");
	}
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t t;
	pid_t child;
	int status;

	sigaction(SIGALRM, &action, NULL);
	pthread_create(&t, NULL, work, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	work(NULL);
	pthread_join(t, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	child = fork();
	if (!child) {
		total++;
		_exit(5);
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
		return 1;
	return ticks < 2 || !last;
}
