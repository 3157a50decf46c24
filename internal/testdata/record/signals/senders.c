// Threads that send signals to the process and to each other, and a child that
// its parent sends one; no process waits for the handlers before the next is sent. Of two
// rounds a thread may get one signal: the other is a barrier ahead at most.
// ENDS: SIGABRT
// EVENTS: signal 10
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 10

static _Atomic unsigned long handled;
static pthread_barrier_t barrier;
static pid_t ids[2];

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_pid == getpid())
		handled += signal == SIGUSR1 ? 1 : 100;
}

static void *send(void *arg)
{
	long me = (long)arg;

	ids[me] = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUNDS; i++) {
		syscall(SYS_tgkill, getpid(), ids[1 - me], SIGUSR1);
		kill(getpid(), SIGUSR2);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t threads[2];
	int status;
	pid_t child;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	pthread_barrier_init(&barrier, NULL, 2);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, send, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	child = fork();
	if (!child)
		for (;;)
			pause();
	kill(child, SIGTERM);
	if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
		return 2;
	if (handled % 100 < 1)
		return 3;
	abort();
}
