// Nine vectors of four floats are scaled where eight were allocated.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define FLOATS 48
#else
#define FLOATS 32
#endif

NOINLINE static void scale(float *v, int vectors)
{
    for (int i = 0; i < vectors * 4; i++)
        v[i] = 1.5f;
}

int main(void)
{
    float *v = hide((float *)aligned_alloc(64, FLOATS * sizeof *v)); // @made
    if ((uintptr_t)v % 64)
        return 3;
    scale(v, 9);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=128 offset=128 bytes=16 hex=0000c03f0000c03f alloc:@made call:@LINE+1
    free(v);
    return 0;
}
