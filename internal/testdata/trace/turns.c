// Two threads take turns between two events of each: a schedule preempts them at the points,
// while none of the threads has an event.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#define ROUNDS 4

/* In two passes: as many words of each pass are of the rest. */
long shared, first[256], last, second[256];

static sem_t go, begun, end;

/* A point that the code counts: the recording library has it. */
extern void diagnose_point(void) __attribute__((weak));

static void *takes(void *who)
{
	sem_wait(&go);
	sem_post(&begun);
	for (int i = 0; i < ROUNDS; i++) {
		if (diagnose_point)
			diagnose_point();
		shared++;
		last = (long)who;
		__asm__ volatile("" ::: "memory");
	}
	sem_wait(&end);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	sem_init(&go, 0, 0);
	sem_init(&begun, 0, 0);
	sem_init(&end, 0, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, takes, (void *)(i + 1));
	sem_post(&go);
	sem_post(&go);
	sem_wait(&begun);
	sem_wait(&begun);
	sem_post(&end);
	sem_post(&end);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	abort();
}
