// The program fails by SIGSEGV because of a variable. With another value it goes another way, with threads that take turns at a lock.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t begun, turning;
volatile int broken = 1, forever, wild, catches, aborts, frees, waits, locks, repaired;
static sigjmp_buf before;
volatile int handled, total, turns, stopped;
int *volatile where;

__attribute__((noinline)) void handle(int n)
{
	pthread_mutex_lock(&lock);
	total += n;
	handled++;
	pthread_mutex_unlock(&lock);
}

static void *work(void *n)
{
	sem_wait(&begun);
	for (int i = 0; i < 3; i++) {
		handle((int)(long)n);
		usleep(1000);
	}
	return 0;
}

// It computes while the program fails.
static void *turn(void *unused)
{
	sem_post(&turning);
	while (!stopped)
		turns++;
	return unused;
}

static void *late(void *n)
{
	handle((int)(long)n);
	return 0;
}

__attribute__((noinline)) int check(void) { return broken ? *where : 1; }
__attribute__((noinline)) int add(int n) { return total += n; }
__attribute__((noinline)) int at_end(void) { return total; }

static void on_fault(int number)
{
	repaired = number;
	siglongjmp(before, 1);
}

int main(void)
{
	pthread_t t[4];
	pthread_create(&t[0], 0, work, (void *)10);
	pthread_create(&t[1], 0, work, (void *)100);
	pthread_create(&t[2], 0, turn, 0);
	sem_wait(&turning);
	int value = check();
	stopped = 1;
	sem_post(&begun);
	sem_post(&begun);
	pthread_create(&t[3], 0, late, (void *)1000);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	while (forever) total++;
	if (catches)
		signal(SIGSEGV, on_fault);
	if (wild && !sigsetjmp(before, 1))
		value += *where;
	if (frees)
		free((char *)&lock + frees);
	if (aborts)
		abort();
	if (waits)
		poll(0, 0, -1);
	if (locks) {
		pthread_mutex_lock(&lock);
		pthread_mutex_lock(&lock);
	}
	printf("total %d\n", total + value);
	at_end();
	return 3;
}
