// The same write is seen when more of an object is filled.
// OPTIONS: fill_bytes=256
#include <stdlib.h>

#include "lib/hide.h"

struct page {
    char text[200];
    int dirty;
    char rest[96];
};

NOINLINE static void mark(struct page *p)
{
    p->dirty = 0x01010101;
    done();
}

int main(void)
{
    struct page *p = hide((struct page *)calloc(1, sizeof *p)); // @made
#ifdef FIXED
    mark(p);
    free(p);
#else
    free(p); // @freed
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=300 offset=200 bytes=4 hex=01010101 alloc:@made free:@freed call:nowhere
    mark(hide(p));
#endif
    return 0;
}
