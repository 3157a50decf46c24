/* Stacks of small nodes, pushed and popped as a parser or an evaluator does:
 * the object freed last is the next that is wanted. */
#include "bench.h"

struct node {
	struct node *below;
	uint32_t value, words;
	uint64_t more[];
};

static void *body(void *arg)
{
	struct worker *w = arg;
	struct node *top = NULL;
	unsigned depth = 0;

	for (uint64_t i = 0; i < w->work;) {
		uint64_t r = bench_random(w);
		unsigned push = r % 64, pop = (r >> 8) % (depth > 2000 ? 128 : 64);
		for (; push > 0; push--, i++, depth++) {
			uint32_t words = (r >> (push % 32)) % 10;
			struct node *n = bench_check(malloc(sizeof *n + words * 8));
			n->below = top;
			n->value = (uint32_t)i;
			n->words = words;
			for (uint32_t k = 0; k < words; k++)
				n->more[k] = i + k;
			top = n;
		}
		for (; pop > 0 && top != NULL; pop--, depth--) {
			struct node *n = top;
			top = n->below;
			bench_add(w, n->value + (n->words > 0 ? n->more[n->words - 1] : 0));
			free(n);
		}
	}
	while (top != NULL) {
		struct node *n = top;
		top = n->below;
		free(n);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 50000000);
}
