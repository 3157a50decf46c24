// A record is destroyed as if it were two names: the second is a length.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

struct record {
    char *name;
    intptr_t length;
};

NOINLINE static void destroy(struct record *r, int names)
{
    char **name = (char **)r;
    for (int i = 0; i < names; i++)
        // WANT: invalid-free:@LINE+2
        // HEAP: invalid-free says=wild addr=0x18 call:@LINE+1
        free(name[i]);
    done();
}

int main(void)
{
    struct record *r = hide((struct record *)malloc(sizeof *r));
    r->name = hide((char *)malloc(24));
    r->length = 24;
#ifdef FIXED
    destroy(r, 1);
#else
    destroy(r, 2);
#endif
    free(r);
    return 0;
}
