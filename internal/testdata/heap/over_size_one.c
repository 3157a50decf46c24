// A flag of one byte is written through a pointer to two.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
typedef uint16_t flag;
#else
typedef uint8_t flag;
#endif

NOINLINE static void raise_flag(void *f)
{
    uint16_t set = 0x0101;
    memcpy(f, &set, sizeof set);
}

int main(void)
{
    flag *f = hide((flag *)malloc(sizeof *f)); // @made
    raise_flag(f);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=1 offset=1 bytes=1 hex=01 alloc:@made call:@LINE+1
    free(f);
    return 0;
}
