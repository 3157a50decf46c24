// The same with a real-time signal of timer_create, a program that is executed, and
// a thread whose work the handlers interrupt, too: whichever thread has the signal unblocked.
// ENDS: exit 0
// EVENTS: signal 3
// EVENTS: fork 3
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int children;

static void on_timer(int signal)
{
	char *arguments[] = { "true", NULL }, *none[] = { NULL };
	pid_t child;
	int status;

	(void)signal;
	if (!posix_spawn(&child, "/bin/true", NULL, NULL, arguments, none) && waitpid(child, &status, 0) == child)
		atomic_fetch_add(&children, 1);
}

static void *work(void *unused)
{
	volatile unsigned long steps = 0;

	while (steps < 5000000)
		steps++;
	return unused;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
	struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	pthread_t threads[2];
	timer_t timer;

	event.sigev_signo = SIGRTMIN;
	sigaction(SIGRTMIN, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
		return 1;
	while (children < 3)
		for (int i = 0; i < 2; i++) {
			pthread_create(&threads[i], NULL, work, NULL);
			pthread_join(threads[i], NULL);
		}
	timer_delete(timer);
	return 0;
}
