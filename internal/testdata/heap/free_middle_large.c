// A mapped file's body is freed instead of its start, which a header precedes.
#include <stdlib.h>

#include "lib/hide.h"

enum { HEADER = 4096 };

int main(void)
{
    char *start = hide((char *)calloc(1, 500000)); // @made
    char *body = start + HEADER;
    body[0] = 1;
#ifdef FIXED
    body -= HEADER;
#endif
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=500000 at=4096 alloc:@made call:@LINE+1
    free(hide(body));
    return 0;
}
