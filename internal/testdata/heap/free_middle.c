// strsep(3) moves the pointer along, and the moved pointer is freed.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

NOINLINE static int fields(const char *text)
{
    char *copy = hide((char *)malloc(strlen(text) + 1)); // @made
    strcpy(copy, text);
    char *rest = copy;
    int n = 0;
    while (n < 2 && strsep(&rest, ":"))
        n++;
#ifdef FIXED
    rest = copy;
#endif
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=22 at=7 alloc:@made call:@LINE+1
    free(rest);
    return n;
}

int main(void)
{
    return fields("root:x:0:0:/root:/bin") != 2;
}
