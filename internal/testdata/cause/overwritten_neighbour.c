// Nodes of a pool, side by side in one object: a long name reaches into the next
// node, whose pointer is followed much later.
// CAUSE kind=overwritten-variable variable="pool.nodes[3].next|*@OBJECT*|*next|pool*"
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: iron copper aluminium-magnesium zinc
// RUNS pass: iron copper aluminium zinc
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 8 };

struct node {
	struct node *next;
	char name[16];
};

static struct {
	struct node *nodes;
	int used;
} pool;

static struct node *first, **last = &first;
static size_t letters;

static void make_pool(void)
{
	pool.nodes = calloc(NODES, sizeof(*pool.nodes)); // OBJECT
	for (int i = 0; i < NODES; i++) {
		*last = &pool.nodes[i];
		last = &pool.nodes[i].next;
	}
}

static struct node *node_of(int number)
{
	return &pool.nodes[number];
}

static void set_name(struct node *n, const char *name)
{
#ifdef FIXED
	snprintf(n->name, sizeof(n->name), "%s", name);
#else
	strcpy(n->name, name); // BUG
#endif
}

static void count_letters(void)
{
	for (struct node *n = first; n; n = n->next)
		letters += strnlen(n->name, sizeof(n->name));
}

int main(int argc, char **argv)
{
	make_pool();
	for (int i = 1; i < argc && i <= NODES; i++)
		set_name(node_of(i - 1), argv[i]);
	count_letters();
	printf("%zu letters\n", letters);
	return 0;
}
