// Seven bytes of a MAC address and its type, copied eight at a time.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define PAD 1
#else
#define PAD 0
#endif

NOINLINE static void load(uint8_t *to, uint64_t from)
{
    memcpy(to, &from, sizeof from);
    done();
}

int main(void)
{
    uint8_t *mac = hide((uint8_t *)malloc(7 + PAD)); // @made
    load(mac, 0x5500aabbccddeeff);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=7 offset=7 bytes=1 hex=55 alloc:@made call:@LINE+1
    free(mac);
    return 0;
}
