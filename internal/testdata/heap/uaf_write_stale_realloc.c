// The array moved when it grew; a pointer to its first element stayed.
#include <stdlib.h>

#include "lib/hide.h"

int main(void)
{
    int *numbers = hide((int *)malloc(4 * sizeof *numbers)); // @made
    int *minimum = numbers;
    *minimum = 100;
    numbers = hide((int *)realloc(numbers, 4000 * sizeof *numbers)); // @moved
#ifdef FIXED
    minimum = numbers;
#endif
    *hide(minimum) = 0x33323130;
    done();
    numbers[3999] = 1;
    free(numbers);
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=16 offset=0 bytes=4 text=0123 alloc:@made free:@moved call:nowhere
    return 0;
}
