// Pointers are followed through memory that no cache holds.
#include <stdio.h>
#include <stdlib.h>

struct node {
	struct node *next;
	long value[7];
};

enum { NODES = 1 << 17 };
static struct node nodes[NODES];

int main(int argc, char **argv)
{
	long rounds = atol(argv[argc - 1]), sum = 0;
	struct node *at = nodes;

	for (long i = 0, to = 0; i < NODES; i++) {
		to = (to * 1664525 + 1013904223) % NODES; // a full cycle
		at->next = &nodes[to];
		at->value[0] = i;
		at = at->next;
	}
	for (long i = 0; i < rounds * 1000; i++, at = at->next)
		sum += at->value[0];
	printf("%ld\n", sum);
	return 0;
}
