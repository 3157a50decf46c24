/* What the malloc-heavy programs share: PROGRAM THREADS PERCENT runs `work`
 * operations in all, divided among the threads, and prints a checksum that
 * depends on the contents and sizes of objects, never on their addresses: it
 * is the same under every allocator. */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_MAX_THREADS 64

struct worker {
	unsigned id, threads;
	uint64_t work; /* operations of this thread */
	uint64_t rng;
	uint64_t sum;
};

/* xorshift64*, Vigna 2016. */
static inline uint64_t bench_random(struct worker *w)
{
	w->rng ^= w->rng >> 12;
	w->rng ^= w->rng << 25;
	w->rng ^= w->rng >> 27;
	return w->rng * 0x2545f4914f6cdd1dull >> 16;
}

static inline void bench_add(struct worker *w, uint64_t value)
{
	w->sum = (w->sum ^ value) * 0x9e3779b97f4a7c15ull;
}

static inline void *bench_check(void *object)
{
	if (object == NULL) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return object;
}

/* Sizes as programs ask for them: half up to 64 bytes, a few up to 8 KiB. */
static inline size_t bench_size(struct worker *w)
{
	uint64_t r = bench_random(w);
	unsigned shift = 6;

	while (shift < 13 && (r & 1)) {
		shift++;
		r >>= 1;
	}
	return 8 + (r >> 8) % ((1u << shift) - 7);
}

static int bench_main(int argc, char **argv, void *(*body)(void *), uint64_t work)
{
	static struct worker workers[BENCH_MAX_THREADS];
	pthread_t threads[BENCH_MAX_THREADS];
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	unsigned percent = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
	uint64_t sum = 0;

	if (n < 1 || n > BENCH_MAX_THREADS || percent < 1) {
		fprintf(stderr, "usage: %s THREADS PERCENT\n", argv[0]);
		return 2;
	}
	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct worker){i, n, work * percent / 100 / n, 88172645463325252ull + i, 0};
		if (n > 1 && pthread_create(&threads[i], NULL, body, &workers[i]) != 0) {
			perror("pthread_create");
			return 1;
		}
	}
	if (n == 1)
		body(&workers[0]);
	for (unsigned i = 0; i < n; i++) {
		if (n > 1)
			pthread_join(threads[i], NULL);
		sum += workers[i].sum;
	}
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}

#endif
