// A bitmap's header is written before the block of 300,000 bytes.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define HEADER 4
#else
#define HEADER 0
#endif

NOINLINE static void describe(char *pixels)
{
    memcpy(pixels - 4, "BMP1", 4);
}

int main(void)
{
    char *block = hide((char *)malloc(HEADER + 300000)); // @made
    describe(block + HEADER);
    // WANT: heap-underflow:@LINE+2
    // HEAP: heap-underflow object=300000 offset=-4 bytes=4 text=BMP1 alloc:@made call:@LINE+1
    free(block);
    return 0;
}
