/* Objects of random sizes in a live set, of which a random one is replaced. */
#include "bench.h"

#define LIVE 50000

struct object {
	size_t size;
	unsigned char *bytes;
};

static void *body(void *arg)
{
	struct worker *w = arg;
	struct object *live = bench_check(calloc(LIVE, sizeof *live));

	for (uint64_t i = 0; i < w->work; i++) {
		struct object *o = &live[bench_random(w) % LIVE];
		if (o->bytes != NULL) {
			bench_add(w, o->bytes[0] + o->bytes[o->size - 1]);
			free(o->bytes);
		}
		o->size = bench_size(w);
		o->bytes = bench_check(malloc(o->size));
		memset(o->bytes, (int)i, o->size);
	}
	for (unsigned i = 0; i < LIVE; i++)
		free(live[i].bytes);
	free(live);
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 12000000);
}
