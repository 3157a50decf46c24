/* A bounded queue without locks, of D. Vyukov's kind: each cell has a sequence number, and producers and
 * consumers take cells by compare-and-swap. No thread waits in the kernel: it tries again. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 1024u
#define ITEMS 20000u /* of each producer */
#define PAIRS 2u

static struct {
	atomic_uint sequence;
	uint32_t value;
} cells[CELLS];
static atomic_uint tail, head, taken;
static uint32_t seen[PAIRS]; /* depends on the order */

static int put(uint32_t value)
{
	unsigned at = atomic_load(&tail);

	for (;;) {
		int difference = (int)(atomic_load(&cells[at % CELLS].sequence) - at);

		if (difference < 0)
			return 0;
		if (!difference && atomic_compare_exchange_weak(&tail, &at, at + 1))
			break;
		if (difference)
			at = atomic_load(&tail);
	}
	cells[at % CELLS].value = value;
	atomic_store(&cells[at % CELLS].sequence, at + 1);
	return 1;
}

static int take(uint32_t *value)
{
	unsigned at = atomic_load(&head);

	for (;;) {
		int difference = (int)(atomic_load(&cells[at % CELLS].sequence) - (at + 1));

		if (difference < 0)
			return 0;
		if (!difference && atomic_compare_exchange_weak(&head, &at, at + 1))
			break;
		if (difference)
			at = atomic_load(&head);
	}
	*value = cells[at % CELLS].value;
	atomic_store(&cells[at % CELLS].sequence, at + CELLS);
	return 1;
}

static void *produce(void *number)
{
	uint32_t value = (uint32_t)(uintptr_t)number;

	for (unsigned i = 0; i < ITEMS; i++) {
		value = value * 1664525u + 1013904223u;
		while (!put(value))
			;
	}
	return NULL;
}

static void *consume(void *number)
{
	uint32_t *mine = &seen[(uintptr_t)number];
	uint32_t value;

	while (atomic_load(&taken) < PAIRS * ITEMS) {
		if (!take(&value))
			continue;
		atomic_fetch_add(&taken, 1);
		*mine = *mine * 31 + value;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2 * PAIRS];

	for (unsigned i = 0; i < CELLS; i++)
		atomic_init(&cells[i].sequence, i);
	for (uintptr_t i = 0; i < PAIRS; i++) {
		pthread_create(&threads[2 * i], NULL, produce, (void *)i);
		pthread_create(&threads[2 * i + 1], NULL, consume, (void *)i);
	}
	for (unsigned i = 0; i < 2 * PAIRS; i++)
		pthread_join(threads[i], NULL);
	printf("%u %u\n", seen[0], seen[1]);
	abort();
}
