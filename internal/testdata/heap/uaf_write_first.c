// The last owner marks a node as unused that is gone.
#include <stdlib.h>

#include "lib/hide.h"

struct node {
    long references;
    char name[40];
};

NOINLINE static struct node *make(void)
{
    struct node *n = hide((struct node *)calloc(1, sizeof *n)); // @made
    n->references = 2;
    return n;
}

NOINLINE static void drop(struct node *n)
{
#ifdef FIXED
    if (--n->references == 0)
        free(n);
#else
    free(n); // @freed
    n = hide(n);
    n->references = -1;
#endif
    done();
}

int main(void)
{
    struct node *n = make(); // @asked
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=48 offset=0 bytes=8 hex=ffffffffffffffff alloc:@made<@asked free:@freed<@LINE+1 call:nowhere
    drop(n);
    return 0;
}
