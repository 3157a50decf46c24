// A queue for one producer and one consumer, used by two consumers: both take the
// same element.
// CAUSE kind=atomicity-violation variable=queue.tail pattern=RWW
// FAILS signal=SIGABRT says="was taken"
// RUNS fail: 100000
// RUNS pass: 4
// SEARCH: the queue has no lock, and nothing else between the accesses
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLOTS = 1024 };

static struct {
	unsigned long head, tail;
	unsigned long slots[SLOTS];
} queue;

static unsigned long sums[2];
static unsigned long elements;
static int closed;

static int put(unsigned long value)
{
	unsigned long head = queue.head;

	if (head - __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE) >= SLOTS)
		return 0;
	queue.slots[head % SLOTS] = value;
	__atomic_store_n(&queue.head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

static unsigned long get(void)
{
	unsigned long tail = __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE), value; // BUG 1

	if (tail >= __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE))
		return 0;
	value = queue.slots[tail % SLOTS];
#ifdef FIXED
	if (!__atomic_compare_exchange_n(&queue.tail, &tail, tail + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
#else
	__atomic_store_n(&queue.tail, tail + 1, __ATOMIC_RELEASE); // BUG 2 3
#endif
	return value;
}

static void *consume(void *sum)
{
	while (!__atomic_load_n(&closed, __ATOMIC_ACQUIRE) || queue.tail < queue.head)
		*(unsigned long *)sum += get();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long sum = 0;
	pthread_t threads[2];

	elements = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, consume, &sums[i]);
	for (unsigned long i = 1; i <= elements; i++) {
		while (!put(i))
			;
		sum += i;
	}
	__atomic_store_n(&closed, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (sums[0] + sums[1] != sum) {
		fprintf(stderr, "%lu was put and %lu was taken\n", sum, sums[0] + sums[1]);
		abort();
	}
	return 0;
}
