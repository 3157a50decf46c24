// A search for a mark that is not there reads up to the next page: nothing
// is damaged, and the address alone names the object.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { SIZE = 180000 };

NOINLINE static size_t find(const char *text, char mark)
{
    size_t i = 0;
#ifdef FIXED
    while (i < SIZE && *hide(&text[i]) != mark)
        i++;
#else
    // WANT: heap-overflow read:@LINE+1
    while (*hide(&text[i]) != mark)
        i++;
#endif
    return i;
}

int main(void)
{
    char *text = hide((char *)malloc(SIZE)); // @made
    memset(text, 'a', SIZE);
    // HEAP: heap-object object=180000 at=180016 alloc:@made
    size_t n = find(text, 'b');
    free(text);
    return n != SIZE;
}
