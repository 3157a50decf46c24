// Two records of one kind are damaged before either is freed; the program ends
// at the first, and the core shows both.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define DIGITS 5
#else
#define DIGITS 6
#endif

NOINLINE static char *code(int digit)
{
    char *c = hide((char *)malloc(5)); // @made
    memset(c, '0' + digit, DIGITS);
    return c;
}

int main(void)
{
    char *a = code(3); // @first
    char *b = code(4); // @second
    // WANT: heap-overflow:@LINE+3
    // HEAP: heap-overflow object=5 offset=5 bytes=1 text=4 alloc:@made<@second call:@LINE+2
    // HEAP: heap-overflow object=5 offset=5 bytes=1 text=3 alloc:@made<@first
    free(b);
    free(a);
    return 0;
}
