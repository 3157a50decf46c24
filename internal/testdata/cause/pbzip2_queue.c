// A parallel compressor, after pbzip2: main takes its queue down when the last
// block is written, and a consumer that still ends looks at it.
// CAUSE kind=order-violation variable=fifo pattern=WR
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: 60
// RUNS pass: 1
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 6, SIZE = 256 };

struct queue {
	pthread_mutex_t *lock;
	pthread_cond_t *filled;
	int blocks[BLOCKS];
	int head, tail, closed;
};

static struct queue *fifo;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t out_done = PTHREAD_COND_INITIALIZER;
static int out_blocks;
static int statistics_ms;
static unsigned long packed;

static struct queue *queue_new(void)
{
	struct queue *q = calloc(1, sizeof(*q));

	q->lock = malloc(sizeof(*q->lock));
	q->filled = malloc(sizeof(*q->filled));
	pthread_mutex_init(q->lock, NULL);
	pthread_cond_init(q->filled, NULL);
	return q;
}

static void queue_delete(void)
{
	pthread_mutex_destroy(fifo->lock);
	pthread_cond_destroy(fifo->filled);
	free(fifo->lock);
	free(fifo->filled);
	free(fifo);
	fifo = NULL; // BUG 1
}

static void compress(int block)
{
	unsigned char data[SIZE];
	unsigned long sum = 0;

	memset(data, block, sizeof(data));
	for (int i = 0; i < SIZE; i++)
		sum = sum * 131 + data[i];
	pthread_mutex_lock(&out_lock);
	packed += sum & 63;
	out_blocks++;
	pthread_cond_signal(&out_done);
	pthread_mutex_unlock(&out_lock);
	write(1, "block\n", 6);
}

static void *consumer(void *unused)
{
	(void)unused;
	for (;;) {
		int block = -1;

		pthread_mutex_lock(fifo->lock); // BUG 2
		while (fifo->head == fifo->tail && !fifo->closed)
			pthread_cond_wait(fifo->filled, fifo->lock);
		if (fifo->head != fifo->tail)
			block = fifo->blocks[fifo->head++];
		pthread_mutex_unlock(fifo->lock);
		if (block < 0)
			return NULL;
		compress(block);
		usleep((useconds_t)statistics_ms * 1000);
	}
}

int main(int argc, char **argv)
{
	pthread_t thread;

	statistics_ms = argc > 1 ? atoi(argv[1]) : 1;
	fifo = queue_new();
	pthread_create(&thread, NULL, consumer, NULL);
	pthread_mutex_lock(fifo->lock);
	for (int i = 0; i < 2; i++)
		fifo->blocks[fifo->tail++] = i;
	fifo->closed = 1;
	pthread_cond_signal(fifo->filled);
	pthread_mutex_unlock(fifo->lock);

	pthread_mutex_lock(&out_lock);
	while (out_blocks < 2)
		pthread_cond_wait(&out_done, &out_lock);
	pthread_mutex_unlock(&out_lock);
#ifdef FIXED
	pthread_join(thread, NULL);
#endif
	usleep(30000); /* the output's header */
	queue_delete();
#ifndef FIXED
	pthread_join(thread, NULL);
#endif
	printf("%lu\n", packed);
	return 0;
}
