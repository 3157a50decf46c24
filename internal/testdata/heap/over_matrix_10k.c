// A matrix of 50 x 25 is walked with rows and columns exchanged.
#include <stdlib.h>

#include "lib/hide.h"

enum { ROWS = 50, COLUMNS = 25 };

struct matrix {
    double *cell;
};

NOINLINE static void diagonal(struct matrix *m, int n)
{
    for (int i = 0; i < n; i++)
        m->cell[i * COLUMNS + i] = 0x1.2345678912345p+1;
}

int main(void)
{
    struct matrix m = {hide((double *)calloc(ROWS * COLUMNS, sizeof(double)))}; // @made
#ifdef FIXED
    diagonal(&m, COLUMNS);
#else
    // Cell (49, 49) is 24 cells past the end, all others lie inside.
    diagonal(&m, ROWS);
#endif
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=10000 offset=10192 bytes=8 hex=4523917856340240 alloc:@made call:@LINE+1
    free(m.cell);
    return 0;
}
