// A host name of eight letters leaves no room for its terminator.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define ROOM 1
#else
#define ROOM 0
#endif

NOINLINE static char *copy(const char *name)
{
    char *p = hide(malloc(strlen(name) + ROOM)); // @made
    strcpy(p, name);
    return p;
}

int main(void)
{
    char *host = copy("saturn-9"); // @copied
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=8 offset=8 bytes=1 hex=00 alloc:@made<@copied call:@LINE+1
    free(host);
    return 0;
}
