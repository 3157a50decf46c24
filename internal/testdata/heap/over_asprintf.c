// A counter in a printed name is replaced by a longer one, in place.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define NEXT 8
#else
#define NEXT 1234
#endif

int main(void)
{
    char *name;
    if (asprintf(&name, "part-%d", 7) != 6) // @made
        return 2;
    name = hide(name);
    sprintf(name + 5, "%d", NEXT);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=7 offset=7 bytes=3 hex=333400 alloc:@made call:@LINE+1
    free(name);
    return 0;
}
