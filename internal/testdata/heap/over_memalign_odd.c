// A ring of descriptors on a cache line, whose count is a power of two less
// one; the last index is not masked.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

struct descriptor {
    uint32_t address, length, flags;
};

#ifdef FIXED
#define COUNT 8
#else
#define COUNT 7
#endif

NOINLINE static void post(struct descriptor *ring, unsigned i)
{
    ring[i % 8].flags = 0x71717171;
}

int main(void)
{
    struct descriptor *ring = hide((struct descriptor *)memalign(32, COUNT * sizeof *ring)); // @made
    for (unsigned i = 0; i < 16; i++)
        post(ring, i);
    // The address and the length of the eighth are not touched.
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=84 offset=92 bytes=4 text=qqqq reaches inferred alloc:@made call:@LINE+1
    free(ring);
    return 0;
}
