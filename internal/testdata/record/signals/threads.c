// Handlers in threads that compute, wait for a semaphore and are joined, sent by
// pthread_kill. Each of the first thread's ten is waited for; the second's may
// merge while it does not run, but for the one before its first token.
// ENDS: exit 5
// EVENTS: signal 11
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static volatile unsigned long handled[2], work;
static sem_t ready, tokens, done;
static __thread int me;

static void on_user(int signal)
{
	(void)signal;
	handled[me]++;
	if (!me)
		sem_post(&done);
}

static void *compute(void *arg)
{
	(void)arg;
	while (handled[0] < 10) {
		for (int i = 0; i < 20000; i++)
			work += (unsigned long)i * 0x9e3779b97f4a7c15ul;
		sched_yield();
	}
	return NULL;
}

static void *wait_for_tokens(void *arg)
{
	(void)arg;
	me = 1;
	sem_post(&ready);
	for (int got = 0; got < 10;)
		if (!sem_wait(&tokens))
			got++;
		else if (errno != EINTR)
			_exit(3);
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_user };
	pthread_t threads[2];

	sigaction(SIGUSR1, &action, NULL);
	sem_init(&ready, 0, 0);
	sem_init(&tokens, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&threads[0], NULL, compute, NULL);
	pthread_create(&threads[1], NULL, wait_for_tokens, NULL);
	sem_wait(&ready); /* or its handler would take it for the first */
	for (int i = 0; i < 10; i++) {
		usleep(2000);
		pthread_kill(threads[0], SIGUSR1);
		pthread_kill(threads[1], SIGUSR1);
		sem_post(&tokens);
		sem_wait(&done);
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 5;
}
