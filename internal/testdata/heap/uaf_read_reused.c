// The link of a freed node is kept, and followed when the node's memory has
// been handed out again: whose it was then is an inference.
#include <stdlib.h>

#include "lib/hide.h"

enum { NODES = 40000 };

struct node {
    struct node *next;
    long value;
};

static struct node *nodes[NODES];

NOINLINE static long value_of(const struct node *n)
{
    // WANT: use-after-free read:@LINE+1
    return n->value;
}

int main(void)
{
    static struct node last = {NULL, 4};
    for (int i = 0; i < NODES; i++)
        nodes[i] = hide((struct node *)malloc(sizeof *nodes[i]));
    nodes[0]->next = &last;
#ifdef FIXED
    const struct node *next = nodes[0]->next;
    free(nodes[0]);
#else
    free(nodes[0]);
    const struct node *next = hide(nodes[0])->next;
#endif
    for (int i = 1; i < NODES; i++)
        free(nodes[i]);
    for (int i = 0; i < NODES; i++)
        nodes[i] = hide((struct node *)malloc(sizeof *nodes[i])); // @again
    // HEAP: use-after-free object=16 reused inferred alloc:@again
    return value_of(next) != 4;
}
