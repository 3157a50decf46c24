/* Locals in registers, in inlined functions, and gone. */
#include <stdlib.h>
#include <string.h>

struct node { struct node *next; char text[8]; long key; };
struct node *list;
volatile long sink;

static inline __attribute__((always_inline)) long inner(struct node *n, long by)
{
    long key = n->key + by;
    sink = key;
    if (key > 100)
        abort();
    return key;
}

__attribute__((noinline)) long outer(struct node *n, long gone)
{
    long total = 5;
    sink = gone;
    for (struct node *at = n; at; at = at->next)
        total += inner(at, 60);
    return total;
}

int main(int argc, char **argv)
{
    list = calloc(1, sizeof *list);
    strcpy(list->text, "abc");
    list->key = 50 - argc + 1;
    return outer(list, argc) > 0;
}
