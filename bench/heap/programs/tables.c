/* Tables by calloc: open hash tables that double when they are half full, and
 * rows of matrices. */
#include "bench.h"

struct table {
	uint64_t *keys;
	size_t size, used;
};

static void put(struct table *t, uint64_t key);

static void grow(struct table *t)
{
	struct table larger = {bench_check(calloc(t->size * 2, 8)), t->size * 2, 0};

	for (size_t i = 0; i < t->size; i++)
		if (t->keys[i] != 0)
			put(&larger, t->keys[i]);
	free(t->keys);
	*t = larger;
}

static void put(struct table *t, uint64_t key)
{
	if (t->used * 2 >= t->size)
		grow(t);
	size_t i = key * 0x9e3779b97f4a7c15ull & (t->size - 1);
	while (t->keys[i] != 0 && t->keys[i] != key)
		i = (i + 1) & (t->size - 1);
	t->used += t->keys[i] == 0;
	t->keys[i] = key;
}

static void hash(struct worker *w, unsigned keys)
{
	struct table t = {bench_check(calloc(16, 8)), 16, 0};

	for (unsigned i = 0; i < keys; i++)
		put(&t, 1 + bench_random(w) % (keys * 2));
	bench_add(w, t.used + t.keys[t.size / 2]);
	free(t.keys);
}

static void matrix(struct worker *w, unsigned n)
{
	uint32_t **rows = bench_check(calloc(n, sizeof *rows));
	uint64_t trace = 0;

	for (unsigned i = 0; i < n; i++) {
		rows[i] = bench_check(calloc(n, sizeof **rows));
		rows[i][i] = i + (uint32_t)bench_random(w);
	}
	for (unsigned i = 0; i < n; i++) {
		trace += rows[i][i] + rows[i][n - 1 - i];
		free(rows[i]);
	}
	free(rows);
	bench_add(w, trace);
}

static void *body(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < w->work; i++) {
		hash(w, 8 + bench_random(w) % 200);
		matrix(w, 8 + bench_random(w) % 56);
		if (i % 256 == 0)
			hash(w, 20000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 150000);
}
