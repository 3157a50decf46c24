// Index -1 of the second array is in the guard after the first: the
// damage is reported for the first, as its origin cannot be known.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

NOINLINE static void set(char *array, int i, char value)
{
    array[i] = value;
}

int main(void)
{
    char *first = hide((char *)malloc(40)); // @first
    char *second = hide((char *)malloc(33));
    memset(first, 1, 40);
    memset(second, 2, 33);
#ifdef FIXED
    set(second, 0, 'v');
#else
    set(second, -1, 'v');
#endif
    free(second);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=40 offset=47 bytes=1 text=v reaches inferred alloc:@first call:@LINE+1
    free(first);
    return 0;
}
