// A length is kept in front of the text, where nothing was allocated for it.
// The object is the first of its kind, so a guard comes before it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define FRONT sizeof(uint64_t)
#else
#define FRONT 0
#endif

NOINLINE static char *text_with_length(size_t n)
{
    char *text = hide((char *)malloc(FRONT + n)) + FRONT; // @made
    uint64_t length = 0x6e6e6e6e6e6e6e6e;
    memcpy(hide(text) - sizeof length, &length, sizeof length);
    return text;
}

int main(void)
{
    char *text = text_with_length(3000);
    memset(text, 0, 3000);
    // WANT: heap-underflow:@LINE+2
    // HEAP: heap-underflow object=3000 offset=-8 bytes=8 text=nnnnnnnn alloc:@made call:@LINE+1
    free(text - FRONT);
    return 0;
}
