// A wrong column index skips the row's own guard and lands in that of the
// next row: honest evidence names the neighbour.
#include <stdlib.h>

#include "lib/hide.h"

NOINLINE static void set(short *row, int column, short value)
{
    row[column] = value;
}

int main(void)
{
    short *first = hide((short *)malloc(20));
    short *second = hide((short *)malloc(18)); // @second
#ifdef FIXED
    set(first, 5, 0x3132);
#else
    set(first, 25, 0x3132);
#endif
    set(second, 1, 1);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=18 offset=18 bytes=2 text=21 alloc:@second call:@LINE+1
    free(second);
    free(first);
    return 0;
}
