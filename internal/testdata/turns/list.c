// Threads put nodes into a list without a lock, for less than a microsecond each, and meet before that. Which nodes are lost tells
// between which accesses to its head they were preempted.
// FLAGS: -O1
#include <pthread.h>
#include <stddef.h>

enum { NODES = 200 };
static struct node {
	struct node *next;
} pool[2][NODES], *volatile head;
static pthread_barrier_t start;

static void *put(void *nodes)
{
	pthread_barrier_wait(&start);
	for (struct node *n = nodes, *end = n + NODES; n < end; n++) {
		n->next = head;
		head = n;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, put, pool[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
