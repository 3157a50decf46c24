// A queue of one producer and one consumer with two plain indices, without a locked instruction and without pause.
// ENDS: SIGABRT
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SIZE = 16, ITEMS = 800 };

static struct {
	_Alignas(64) atomic_uint head;
	_Alignas(64) atomic_uint tail;
	_Alignas(64) unsigned long slot[SIZE];
} ring;

static unsigned long sum, batches, full, empty;

static void *produce(void *arg)
{
	(void)arg;
	for (unsigned long i = 0; i < ITEMS;) {
		unsigned tail = atomic_load_explicit(&ring.tail, memory_order_relaxed);

		if (tail - atomic_load_explicit(&ring.head, memory_order_acquire) == SIZE) {
			full++;
			continue;
		}
		ring.slot[tail % SIZE] = ++i;
		atomic_store_explicit(&ring.tail, tail + 1, memory_order_release);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, produce, NULL);
	for (unsigned long n = 0; n < ITEMS;) {
		unsigned head = atomic_load_explicit(&ring.head, memory_order_relaxed);
		unsigned count = atomic_load_explicit(&ring.tail, memory_order_acquire) - head;

		if (!count) {
			empty++;
			continue;
		}
		batches = batches * 31 + count;
		for (unsigned i = 0; i < count; i++)
			sum = sum * 7 + ring.slot[(head + i) % SIZE];
		atomic_store_explicit(&ring.head, head + count, memory_order_release);
		n += count;
	}
	pthread_join(thread, NULL);
	abort();
}
