/* Buffers of 4 to 64 KiB as input and output use them, of which a part is
 * written. */
#include "bench.h"

#define LIVE 400

struct buffer {
	size_t size;
	unsigned char *bytes;
};

static void *body(void *arg)
{
	struct worker *w = arg;
	struct buffer *live = bench_check(calloc(LIVE, sizeof *live));

	for (uint64_t i = 0; i < w->work; i++) {
		struct buffer *b = &live[bench_random(w) % LIVE];
		if (b->bytes != NULL) {
			bench_add(w, b->bytes[0] + b->bytes[b->size - 1]);
			free(b->bytes);
		}
		b->size = 4096 + bench_random(w) % (60 * 1024);
		b->bytes = bench_check(malloc(b->size));
		memset(b->bytes, (int)i, 1 + bench_random(w) % 4096);
		b->bytes[b->size - 1] = (unsigned char)i;
	}
	for (unsigned i = 0; i < LIVE; i++)
		free(live[i].bytes);
	free(live);
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 4000000);
}
