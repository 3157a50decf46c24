// A triple is stored where a pair was allocated.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define WORDS 3
#else
#define WORDS 2
#endif

NOINLINE static uint64_t *triple(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t *t = hide((uint64_t *)malloc(WORDS * sizeof *t)); // @made
    t[0] = a;
    t[1] = b;
    t[2] = c;
    return t;
}

int main(void)
{
    uint64_t *t = triple(1, 2, 0x4142434445464748);
    int bad = t[0] + t[1] != 3;
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=16 offset=16 bytes=8 hex=4847464544434241 alloc:@made call:@LINE+1
    free(t);
    return bad;
}
