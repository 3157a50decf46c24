/* Binary trees of the Computer Language Benchmarks Game: many short-lived
 * trees of growing depth beside one that lives. */
#include "bench.h"

#define DEPTH 16

struct tree {
	struct tree *left, *right;
};

static struct tree *grow(unsigned depth)
{
	struct tree *t = bench_check(malloc(sizeof *t));

	t->left = t->right = NULL;
	if (depth > 0) {
		t->left = grow(depth - 1);
		t->right = grow(depth - 1);
	}
	return t;
}

/* Frees the tree and counts its nodes. */
static uint64_t fell(struct tree *t)
{
	uint64_t count = 1;

	if (t->left != NULL)
		count += fell(t->left) + fell(t->right);
	free(t);
	return count;
}

static void *body(void *arg)
{
	struct worker *w = arg;
	struct tree *lives = grow(DEPTH + 2);

	for (uint64_t nodes = 0; nodes < w->work;) {
		for (unsigned depth = 4; depth <= DEPTH; depth += 2)
			for (unsigned i = 0; i < 1u << (DEPTH - depth); i++) {
				uint64_t count = fell(grow(depth));
				bench_add(w, count);
				nodes += count;
			}
	}
	bench_add(w, fell(lives));
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 60000000);
}
