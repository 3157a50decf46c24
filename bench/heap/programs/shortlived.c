/* A thread a request: each builds a few hundred objects, hands its answer
 * back and ends. */
#include "bench.h"

struct request {
	uint64_t number;
	struct worker w;
	char *answer; /* freed by who asked */
};

static void *serve(void *arg)
{
	struct request *r = arg;
	char *parts[200];
	size_t length = 0;

	for (unsigned i = 0; i < 200; i++) {
		size_t n = bench_size(&r->w) % 512 + 8;
		parts[i] = bench_check(malloc(n));
		memset(parts[i], 'a' + (int)(i % 26), n);
		length += n;
	}
	r->answer = bench_check(malloc(length));
	for (unsigned i = 0; i < 200; i++) {
		r->answer[i] = parts[i][0];
		free(parts[i]);
	}
	r->answer[length - 1] = 'z';
	bench_add(&r->w, length + (unsigned char)r->answer[100]);
	return NULL;
}

static void *body(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < w->work; i++) {
		struct request *r = bench_check(calloc(1, sizeof *r));
		pthread_t thread;
		r->number = i;
		r->w.rng = bench_random(w) | 1;
		if (pthread_create(&thread, NULL, serve, r) != 0) {
			perror("pthread_create");
			exit(1);
		}
		pthread_join(thread, NULL);
		bench_add(w, r->w.sum);
		free(r->answer);
		free(r);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 20000);
}
