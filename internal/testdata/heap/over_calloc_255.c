// A table for every byte has 255 places, and then comes byte 255.
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define PLACES 256
#else
#define PLACES 255
#endif

NOINLINE static void count(unsigned char *table, const unsigned char *text, int n)
{
    for (int i = 0; i < n; i++)
        table[text[i]]++;
}

int main(void)
{
    static const unsigned char text[] = {1, 2, 255, 7};
    unsigned char *table = hide((unsigned char *)calloc(PLACES, 1)); // @made
    count(table, text, sizeof text);
    // One more than the guard's byte was: it is changed, whatever it was.
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=255 offset=255 bytes=1 alloc:@made call:@LINE+1
    free(table);
    return 0;
}
