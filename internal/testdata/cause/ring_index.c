// A ring whose index is raised first and wrapped afterwards. In between it is one
// too large, and another producer puts its message past the ring.
// CAUSE kind=atomicity-violation variable=ring.head pattern=WRW
// FAILS signal=SIGABRT says="capacity"
// RUNS fail: 5 25
// RUNS pass: 5 150
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLOTS = 4 };

static struct {
	unsigned head;
	unsigned wraps;
	int slots[SLOTS];
	int capacity;
} ring = { .capacity = SLOTS };

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;

struct producer {
	int at, messages, value;
};

static void report_wrap(void)
{
	write(1, "ring is full\n", 13);
	usleep(50000);
}

static void put(int value)
{
#ifdef FIXED
	pthread_mutex_lock(&ring_lock);
#endif
	unsigned at = ring.head; // BUG 2

	ring.slots[at] = value;
	ring.head = at + 1; // BUG 1
	if (at + 1 == SLOTS) {
		report_wrap();
		ring.head = 0; // BUG 3
		ring.wraps++;
	}
#ifdef FIXED
	pthread_mutex_unlock(&ring_lock);
#endif
}

static void *produce(void *arg)
{
	const struct producer *p = arg;

	usleep((useconds_t)p->at * 1000);
	for (int i = 0; i < p->messages; i++)
		put(p->value + i);
	return NULL;
}

static int total(void)
{
	int sum = 0;

	for (int i = 0; i < ring.capacity && i < SLOTS; i++)
		sum += ring.slots[i];
	return sum;
}

int main(int argc, char **argv)
{
	struct producer producers[] = { { argc > 1 ? atoi(argv[1]) : 5, 4, 100 }, { argc > 2 ? atoi(argv[2]) : 150, 1, 200 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, produce, &producers[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (ring.capacity != SLOTS) {
		fprintf(stderr, "a ring with a capacity of %d\n", ring.capacity);
		abort();
	}
	return total() == 0;
}
