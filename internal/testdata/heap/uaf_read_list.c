// A list is freed node by node, with each link read after its node is gone.
#include <stdlib.h>

#include "lib/hide.h"

struct node {
    struct node *next;
    long value;
};

NOINLINE static struct node *push(struct node *head, long value)
{
    struct node *n = hide((struct node *)malloc(sizeof *n)); // @made
    n->next = head;
    n->value = value;
    return n;
}

NOINLINE static long sum_and_free(struct node *n)
{
    long sum = 0;
    while (n) {
#ifdef FIXED
        struct node *next = n->next;
        sum += n->value;
        free(n);
        n = next;
#else
        // The first turn is right; the second begins with a node that is fill.
        // WANT: use-after-free read:@LINE+1
        sum += n->value;
        free(n); // @freed
        n = hide(n)->next;
#endif
    }
    return sum;
}

int main(void)
{
    struct node *list = NULL;
    for (long i = 0; i < 3; i++)
        list = push(list, i); // @pushed
    // HEAP: use-after-free object=16 alloc:@made<@pushed free:@freed<@LINE+1
    return sum_and_free(list) != 3;
}
