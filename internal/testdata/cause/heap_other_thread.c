// A histogram that one thread fills and another evaluates. The value at the upper
// limit has no column of its own.
// CAUSE kind=heap-overflow
// FAILS signal=SIGABRT says="overflow"
// RUNS fail: 50 80
// RUNS pass: 50 60
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10, LIMIT = 100 };

struct histogram {
	pthread_mutex_t lock;
	int *counts;
	int samples;
};

struct source {
	struct histogram *into;
	int base, span;
};

static void count(struct histogram *h, int value)
{
	int column = value * COLUMNS / LIMIT;

#ifdef FIXED
	if (column >= COLUMNS)
		column = COLUMNS - 1;
#endif
	pthread_mutex_lock(&h->lock);
	h->counts[column]++; // BUG
	h->samples++;
	pthread_mutex_unlock(&h->lock);
}

static void *sample(void *arg)
{
	const struct source *s = arg;

	for (int i = 0; i < 200; i++) {
		int phase = i % 21;

		count(s->into, s->base + (phase - 10) * (s->span - s->base) / 6);
	}
	return NULL;
}

static int highest(struct histogram *h)
{
	int best = 0;

	pthread_mutex_lock(&h->lock);
	for (int i = 1; i < COLUMNS; i++)
		if (h->counts[i] > h->counts[best])
			best = i;
	pthread_mutex_unlock(&h->lock);
	return best;
}

int main(int argc, char **argv)
{
	struct histogram h = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct source sources[] = { { &h, argc > 1 ? atoi(argv[1]) : 50, argc > 2 ? atoi(argv[2]) : 60 }, { &h, 40, 50 } };
	pthread_t threads[2];

	h.counts = calloc(COLUMNS, sizeof(*h.counts)); // OBJECT
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, sample, &sources[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d samples, most in column %d\n", h.samples, highest(&h));
	free(h.counts);
	return 0;
}
