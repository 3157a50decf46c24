// The search backwards for a blank continues in front of the line, and marks
// what it finds. No code frees the line.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

static char *line;

NOINLINE static void cut(char *text, size_t n)
{
#ifdef FIXED
    size_t i = n - 1;
    while (i > 0 && text[i] != ' ')
        i--;
#else
    long i = (long)n - 1;
    while (i >= 0 && text[i] != ' ')
        i--;
#endif
    text[i] = '$';
}

int main(void)
{
    line = hide((char *)malloc(700)); // @made
    memset(line, 'w', 700);
    cut(line, 700);
    // WANT: heap-underflow:nowhere
    // HEAP: heap-underflow object=700 offset=-1 bytes=1 text=$ alloc:@made call:nowhere
    return line[5] != 'w';
}
