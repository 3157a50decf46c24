// A texture of a quarter of a megabyte, released by its material and by its
// scene.
#include <stdlib.h>

#include "lib/hide.h"

struct material {
    void *texture;
};

NOINLINE static void release(struct material *m)
{
    free(m->texture); // @first
#ifdef FIXED
    m->texture = NULL;
#endif
    done();
}

int main(void)
{
    struct material m = {hide(malloc(256 << 10))}; // @made
    release(&m);
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=262144 alloc:@made free:@first call:@LINE+1
    free(hide(m.texture));
    return 0;
}
