// The loop over ten measurements takes an eleventh.
#include <stdlib.h>

#include "lib/hide.h"

#ifdef FIXED
#define LAST(n) ((n) - 1)
#else
#define LAST(n) (n)
#endif

NOINLINE static void measure(int *samples, int n)
{
    for (int i = 0; i <= LAST(n); i++)
        samples[i] = 1000 + i;
}

int main(void)
{
    int *samples = hide(malloc(10 * sizeof *samples)); // @made
    measure(samples, 10);
    long sum = 0;
    for (int i = 0; i < 10; i++)
        sum += samples[i];
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=40 offset=40 bytes=4 hex=f2030000 alloc:@made call:@LINE+1
    free(samples);
    return sum != 10045;
}
