// A lock of the program's own (figure 3 D): nothing in the log says which thread had it, and
// whoever does not get it spins. One of the two forgets it, so that an update in
// between is lost.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 3

static int taken;
static volatile int total;

static pthread_barrier_t start;

static void work(int amount)
{
	for (volatile int i = 0; i < amount * 10000; i++)
		;
}

static void take(void)
{
	while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&taken, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
}

static void give(void)
{
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

static void *adds(void *argument)
{
	int last = argument != NULL;

	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		int now, locked = !(last && i == ROUNDS - 1);

		getppid();
		work(50);
		if (locked)
			take();
		now = total;
		work(100);
		getuid(); /* with the lock */
		total = now + 1;
		if (locked)
			give();
	}
	getgid();
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, adds, NULL);
	pthread_create(&threads[1], NULL, adds, &taken);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	if (total != 2 * ROUNDS)
		abort();
	return 0;
}
