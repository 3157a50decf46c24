// Leading blanks were skipped, and the rest is grown.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

int main(void)
{
    char *line = hide((char *)malloc(24)); // @made
    strcpy(line, "   x = 1");
    char *text = line;
    while (*text == ' ')
        text++;
#ifdef FIXED
    memmove(line, text, strlen(text) + 1);
    text = line;
#endif
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=24 at=3 alloc:@made call:@LINE+1
    text = hide((char *)realloc(hide(text), 100));
    free(text);
    return 0;
}
