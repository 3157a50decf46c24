// Two threads put nodes into a list without a lock, and some nodes are lost.
// FLAGS: -O1
// ENDS: SIGABRT
#include <pthread.h>
#include <stdlib.h>

enum { NODES = 200 };
struct node {
	struct node *next;
	long value;
};
static struct node *volatile head;
static struct node pool[2][NODES];
static pthread_barrier_t start;

static void *puts_nodes(void *argument)
{
	long me = (long)argument;
	pthread_barrier_wait(&start);
	for (int i = 0; i < NODES; i++) {
		struct node *n = &pool[me][i];
		n->value = me * 1000 + i;
		n->next = head;
		head = n; /* BUG */
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	int count = 0;
	pthread_barrier_init(&start, NULL, 2);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, puts_nodes, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (struct node *n = head; n; n = n->next)
		count++;
	if (count != 2 * NODES)
		abort();
	return 0;
}
