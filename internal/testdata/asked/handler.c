/* A worker's last signal is missing; the user's Ctrl-C ends the program by its handler. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int box, full, rounds;
static void stop(int number)
{
	(void)number;
	write(2, "stopped\n", 8);
	_exit(3);
}
static void *taker(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!full)
			pthread_cond_wait(&filled, &lock);
		full = 0;
		rounds++;
		if (box != 5)
			pthread_cond_signal(&emptied); /* BUG: not for 5 */
		pthread_mutex_unlock(&lock);
		if (box < 0)
			return arg;
	}
}
int main(void)
{
	struct sigaction a;
	pthread_t t;
	memset(&a, 0, sizeof a);
	a.sa_handler = stop;
	sigaction(SIGINT, &a, NULL);
	pthread_create(&t, NULL, taker, NULL);
	for (int i = 1; i < 9; i++) {
		pthread_mutex_lock(&lock);
		while (full)
			pthread_cond_wait(&emptied, &lock);
		box = i;
		full = 1;
		pthread_cond_signal(&filled);
		while (full)
			pthread_cond_wait(&emptied, &lock);
		pthread_mutex_unlock(&lock);
	}
	puts("done");
	return 0;
}
