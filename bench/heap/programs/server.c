/* A server in the manner of Larson and Krishnan (ISMM 1998): sessions are
 * objects of random sizes that a thread replaces at random; every round the
 * threads pass their sessions on, so that most are freed by another thread
 * than the one that allocated them. */
#include "bench.h"

#define SESSIONS 4000
#define ROUNDS 40

struct session {
	uint32_t size;
	unsigned char *state;
};

static struct session sessions[BENCH_MAX_THREADS][SESSIONS];
static pthread_barrier_t barrier;

static void *body(void *arg)
{
	struct worker *w = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct session *mine = sessions[(w->id + round) % w->threads];
		for (uint64_t i = 0; i < w->work / ROUNDS; i++) {
			struct session *s = &mine[bench_random(w) % SESSIONS];
			if (s->state != NULL) {
				bench_add(w, s->state[0] + s->state[s->size - 1]);
				free(s->state);
			}
			s->size = (uint32_t)(16 + bench_random(w) % 1000);
			s->state = bench_check(malloc(s->size));
			s->state[0] = (unsigned char)i;
			s->state[s->size - 1] = (unsigned char)round;
		}
		pthread_barrier_wait(&barrier);
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		free(sessions[w->id][i].state);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_barrier_init(&barrier, NULL, argc > 1 ? (unsigned)atoi(argv[1]) : 1);
	return bench_main(argc, argv, body, 25000000);
}
