/* Buffers that grow by realloc: strings by pieces, arrays by half, a few of
 * them to megabytes; then trimmed to their contents. */
#include "bench.h"

#define BUFFERS 64

struct buffer {
	size_t length, capacity;
	unsigned char *bytes;
};

static void append(struct buffer *b, unsigned char byte, size_t n)
{
	if (b->length + n > b->capacity) {
		b->capacity = b->length + n + b->capacity / 2;
		b->bytes = bench_check(realloc(b->bytes, b->capacity));
	}
	memset(b->bytes + b->length, byte, n);
	b->length += n;
}

/* How far a buffer grows: most to a few hundred bytes, one in 500 to 2 MiB. */
static size_t target(struct worker *w)
{
	uint64_t r = bench_random(w);

	if (r % 500 == 0)
		return 1u << 21;
	if (r % 20 == 0)
		return 1u << 15;
	return 64 + (r >> 10) % 1000;
}

static void *body(void *arg)
{
	struct worker *w = arg;
	struct buffer *live = bench_check(calloc(BUFFERS, sizeof *live));

	for (uint64_t i = 0; i < w->work; i++) {
		struct buffer *b = &live[i % BUFFERS];
		size_t limit = target(w);
		if (b->bytes != NULL)
			bench_add(w, b->bytes[b->length / 2] + b->length);
		free(b->bytes);
		*b = (struct buffer){0};
		while (b->length < limit)
			append(b, (unsigned char)i, 1 + bench_random(w) % (16 + b->length / 4));
		b->bytes = bench_check(realloc(b->bytes, b->length));
	}
	for (unsigned i = 0; i < BUFFERS; i++)
		free(live[i].bytes);
	free(live);
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 600000);
}
