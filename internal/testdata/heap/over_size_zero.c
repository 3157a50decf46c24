// An empty list of options is allocated with no room for its end mark.
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define END_MARK 1
#else
#define END_MARK 0
#endif

NOINLINE static char *options(size_t n)
{
    char *list = hide((char *)malloc(n + END_MARK)); // @made
    list[n] = '.';
    return list;
}

int main(void)
{
    char *list = options(0);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=0 offset=0 bytes=1 hex=2e alloc:@made call:@LINE+1
    free(list);
    return 0;
}
