// Three threads with two queues between them, on the heap, of one producer and one consumer each, whose indices are atomic variables without a
// locked instruction. The items are pointers to objects of the heap.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
enum { SIZE = 16, ITEMS = 500 };
struct item { long value; };
struct ring { _Alignas(64) atomic_size_t head; _Alignas(64) atomic_size_t tail; _Alignas(64) struct item *slot[SIZE]; };
static unsigned long tries;
static int push(struct ring *r, struct item *i)
{
	size_t t = atomic_load_explicit(&r->tail, memory_order_relaxed);
	if (t - atomic_load_explicit(&r->head, memory_order_acquire) == SIZE) return 0;
	r->slot[t % SIZE] = i;
	atomic_store_explicit(&r->tail, t + 1, memory_order_release);
	return 1;
}
static struct item *pop(struct ring *r)
{
	size_t h = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (h == atomic_load_explicit(&r->tail, memory_order_acquire)) return NULL;
	struct item *i = r->slot[h % SIZE];
	atomic_store_explicit(&r->head, h + 1, memory_order_release);
	return i;
}
static struct ring *a, *b;
static void *produce(void *x)
{
	for (long i = 0; i < ITEMS; i++) {
		struct item *n = malloc(sizeof *n);
		n->value = i;
		while (!push(a, n)) ;
	}
	return 0;
}
static void *middle(void *x)
{
	for (long i = 0; i < ITEMS; i++) {
		struct item *n;
		while (!(n = pop(a))) tries++;
		n->value = n->value * 3 + (tries & 1);
		while (!push(b, n)) ;
	}
	return 0;
}
int main(void)
{
	pthread_t t, u;
	long sum = 0;
	a = aligned_alloc(64, sizeof *a); b = aligned_alloc(64, sizeof *b);
	*a = (struct ring){0}; *b = (struct ring){0};
	pthread_create(&t, 0, produce, 0);
	pthread_create(&u, 0, middle, 0);
	for (long i = 0; i < ITEMS; i++) {
		struct item *n;
		while (!(n = pop(b))) ;
		sum = sum * 7 + n->value;
		free(n);
	}
	pthread_join(t, 0); pthread_join(u, 0);
	printf("%ld %lu\n", sum, tries);
	fflush(stdout);
	abort();
}
