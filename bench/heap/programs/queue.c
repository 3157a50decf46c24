/* Messages through bounded queues: half of the threads produce, the other
 * half consume and free. One thread alone does both in turn. */
#include "bench.h"

#define SLOTS 1024

struct message {
	uint64_t number;
	uint32_t size;
	unsigned char *payload;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, drained;
	struct message *slots[SLOTS];
	unsigned head, tail;
};

static struct queue queues[BENCH_MAX_THREADS];

static struct message *produce(struct worker *w, uint64_t number)
{
	struct message *m = bench_check(malloc(sizeof *m));

	m->number = number;
	m->size = (uint32_t)bench_size(w);
	m->payload = bench_check(malloc(m->size));
	memset(m->payload, (int)number, m->size);
	return m;
}

static void consume(struct worker *w, struct message *m)
{
	bench_add(w, m->number + m->payload[m->size / 2]);
	free(m->payload);
	free(m);
}

/* Puts or takes a batch, as a queue that minds its lock does. */
static void put(struct queue *q, struct message **batch, unsigned n)
{
	pthread_mutex_lock(&q->lock);
	while (q->tail - q->head + n > SLOTS)
		pthread_cond_wait(&q->drained, &q->lock);
	for (unsigned i = 0; i < n; i++)
		q->slots[q->tail++ % SLOTS] = batch[i];
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

static unsigned take(struct queue *q, struct message **batch, unsigned limit)
{
	unsigned n = 0;

	pthread_mutex_lock(&q->lock);
	while (q->tail == q->head)
		pthread_cond_wait(&q->filled, &q->lock);
	while (n < limit && q->head != q->tail)
		batch[n++] = q->slots[q->head++ % SLOTS];
	pthread_cond_signal(&q->drained);
	pthread_mutex_unlock(&q->lock);
	return n;
}

static void *alone(struct worker *w)
{
	struct message *batch[256];

	for (uint64_t i = 0; i < w->work; i += 256) {
		for (unsigned k = 0; k < 256; k++)
			batch[k] = produce(w, i + k);
		for (unsigned k = 0; k < 256; k++)
			consume(w, batch[k]);
	}
	return NULL;
}

static void *body(void *arg)
{
	struct worker *w = arg;
	struct queue *q = &queues[w->id / 2];
	uint64_t messages = w->work * 2 / 32 * 32; /* the pair's */
	struct message *batch[32];

	if (w->threads == 1)
		return alone(w);
	for (uint64_t i = 0; i < messages;) {
		if (w->id % 2 == 0) {
			for (unsigned k = 0; k < 32; k++)
				batch[k] = produce(w, i + k);
			put(q, batch, 32);
			i += 32;
		} else {
			unsigned n = take(q, batch, 32);
			for (unsigned k = 0; k < n; k++)
				consume(w, batch[k]);
			i += n;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < BENCH_MAX_THREADS; i++) {
		pthread_mutex_init(&queues[i].lock, NULL);
		pthread_cond_init(&queues[i].filled, NULL);
		pthread_cond_init(&queues[i].drained, NULL);
	}
	return bench_main(argc, argv, body, 8000000);
}
