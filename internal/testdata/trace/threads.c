// Threads that take turns by semaphores, and locked instructions.
// WATCH: turn 4, counter 8, flag 1, shared 8
// LEAST: 50
// ENDS: exit 0
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>

static sem_t mine[2];
volatile int turn;
atomic_ulong counter;
volatile char flag;
volatile uint64_t shared;

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < 4; i++) {
		sem_wait(&mine[me]);
		if (turn % 2 != me)
			turn = 100;
		atomic_fetch_add(&counter, 1);
		flag = (char)me;
		shared = shared * 3 + (uint64_t)me;
		turn++;
		sem_post(&mine[!me]);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	unsigned long expected = 8;

	sem_init(&mine[0], 0, 1);
	sem_init(&mine[1], 0, 0);
	pthread_create(&thread, NULL, work, (void *)1);
	work((void *)0);
	pthread_join(thread, NULL);
	if (!atomic_compare_exchange_strong(&counter, &expected, 100) || turn != 8)
		return 1;
	expected = 8;
	return atomic_compare_exchange_strong(&counter, &expected, 200);
}
