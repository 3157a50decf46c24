// The write is past the 128 bytes that are filled: there is no evidence,
// and none may be made up.
#include <stdlib.h>

#include "lib/hide.h"

struct page {
    char text[200];
    int dirty;
    char rest[96];
};

NOINLINE static void mark(struct page *p)
{
    p->dirty = 1;
    done();
}

int main(void)
{
    struct page *p = hide((struct page *)calloc(1, sizeof *p));
#ifdef FIXED
    mark(p);
    free(p);
#else
    free(p);
    // HEAP: nothing
    mark(hide(p));
#endif
    return 0;
}
