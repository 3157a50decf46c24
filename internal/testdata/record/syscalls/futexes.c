// A mutex of a runtime that has nothing to do with pthreads: atomic instructions,
// and the kernel only for waiting.
// ENDS: SIGABRT
// EVENTS: syscall 1
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static _Atomic unsigned word, turn;
static long counter;

static void wait_for(_Atomic unsigned *at, unsigned value)
{
	syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL);
}

static void wake(_Atomic unsigned *at, int many)
{
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, many);
}

static void lock(void)
{
	unsigned free = 0;

	if (atomic_compare_exchange_strong(&word, &free, 1))
		return;
	while (atomic_exchange(&word, 2))
		wait_for(&word, 2);
}

static void unlock(void)
{
	if (atomic_exchange(&word, 0) == 2)
		wake(&word, 1);
}

/* Strictly in turn, so that everybody waits. */
static void *work(void *number)
{
	unsigned mine = (unsigned)(unsigned long)number;

	for (int i = 0; i < 20; i++) {
		unsigned now;

		while ((now = atomic_load(&turn)) % 3 != mine)
			wait_for(&turn, now);
		lock();
		counter = counter * 3 + mine;
		unlock();
		atomic_fetch_add(&turn, 1);
		wake(&turn, 10);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	for (long i = 0; i < 3; i++)
		must(!pthread_create(&t[i], NULL, work, (void *)i));
	for (int i = 0; i < 3; i++)
		must(!pthread_join(t[i], NULL));
	printf("%ld\n", counter);
	fflush(stdout);
	abort();
}
