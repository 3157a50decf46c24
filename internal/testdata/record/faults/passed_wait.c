// A signal that comes while a thread waits for a futex, because of memory that no
// event orders: a replay does not reach the wait, and is to run the handler all
// the same, after the event before it and before the one after it.
// ENDS: SIGABRT
// EVENTS: signal 1
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t start;
static unsigned int word;
static volatile sig_atomic_t handled;
static int pipes[2];

static void handler(int signal)
{
	(void)signal;
	handled++;
}

/* Has the word until the handler ran or, as the replay lets one thread run at a
 * time, for as long as it takes. */
static void *holder(void *arg)
{
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	pthread_barrier_wait(&start);
	for (unsigned long i = 0; i < 200ul * 1000 * 1000 && !handled; i++)
		;
	if (__atomic_exchange_n(&word, 0, __ATOMIC_SEQ_CST) == 2)
		syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
	return arg;
}

static void *waiter(void *arg)
{
	pthread_barrier_wait(&start);
	write(pipes[1], "a", 1);
	while (__atomic_exchange_n(&word, 2, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
	write(pipes[1], "b", 1);
	__atomic_store_n(&word, 0, __ATOMIC_SEQ_CST);
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler };
	pthread_t threads[2];
	char c;

	syscall(SYS_getpid); /* binds the name: the replay makes no other */
	sigaction(SIGUSR1, &action, NULL);
	if (pipe(pipes) || pthread_barrier_init(&start, NULL, 2))
		return 2;
	pthread_create(&threads[0], NULL, holder, NULL);
	pthread_create(&threads[1], NULL, waiter, NULL);
	read(pipes[0], &c, 1);
	usleep(10000);
	pthread_kill(threads[1], SIGUSR1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (!handled)
		return 3; /* it came before the wait */
	abort();
}
