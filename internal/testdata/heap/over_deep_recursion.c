// A tree's node is allocated six calls deep; the stack kept of it is the true
// one, though every level calls from the same place.
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define KEYS 3
#else
#define KEYS 2
#endif

struct node {
    long keys[KEYS];
};

NOINLINE static struct node *descend(int levels)
{
    struct node *n;
    if (levels == 0)
        n = hide((struct node *)malloc(sizeof *n)); // @made
    else
        n = descend(levels - 1); // @below
    done();
    return n;
}

int main(void)
{
    struct node *n = descend(4); // @top
    hide(&n->keys[0])[2] = 0x7a7a7a7a;
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=16 offset=16 bytes=8 hex=7a7a7a7a00000000 alloc:@made<@below<@below<@below<@below<@top call:@LINE+1
    free(n);
    return 0;
}
