// A line buffer is grown that the reader has already given back.
#include <stdlib.h>

#include "lib/hide.h"

struct reader {
    char *line;
};

NOINLINE static void reset(struct reader *r)
{
    free(r->line); // @first
#ifdef FIXED
    r->line = NULL;
#endif
    done();
}

int main(void)
{
    struct reader r = {hide((char *)malloc(80))}; // @made
    reset(&r);
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=80 alloc:@made free:@first call:@LINE+1
    char *grown = hide((char *)realloc(hide(r.line), 160));
    free(grown);
    return 0;
}
