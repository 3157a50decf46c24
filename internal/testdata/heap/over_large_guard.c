// The sum of a column of 25,000 numbers is written for 30,000: the page after it
// stops it in the act, 16 bytes after the end.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

enum { NUMBERS = 25000 };

#ifdef FIXED
#define COUNT NUMBERS
#else
#define COUNT 30000
#endif

NOINLINE static void sums(uint64_t *column, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += 0x4141414141414141;
        // WANT: heap-overflow write:@LINE+1
        *hide(&column[i]) = sum;
    }
}

int main(void)
{
    uint64_t *column = hide((uint64_t *)malloc(NUMBERS * sizeof *column)); // @made
    sums(column, COUNT);
    // HEAP: heap-overflow object=200000 offset=200000 bytes=16 reaches alloc:@made
    // HEAP: heap-object object=200000 at=200016 alloc:@made
    free(column);
    return 0;
}
