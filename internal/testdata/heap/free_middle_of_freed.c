// A node's embedded name is freed after its node.
#include <stdlib.h>

#include "lib/hide.h"

struct node {
    long kind;
    char name[56];
};

int main(void)
{
    struct node *n = hide((struct node *)calloc(1, sizeof *n)); // @made
    char *name = hide(&n->name[0]);
    name[0] = 'n';
    free(n); // @freed
#ifndef FIXED
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=64 at=8 alloc:@made free:@freed call:@LINE+1
    free(name);
#endif
    return name == NULL;
}
