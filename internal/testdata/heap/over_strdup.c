// A suffix is appended to what strdup made to measure.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

NOINLINE static char *backup_name(const char *file)
{
#ifdef FIXED
    char *name = hide((char *)malloc(strlen(file) + 2));
    strcpy(name, file);
#else
    char *name = hide(strdup(file)); // @made
#endif
    strcat(name, "~");
    return name;
}

int main(void)
{
    char *name = backup_name("notes.txt"); // @asked
    // The old terminator became the suffix; the new one is outside.
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=10 offset=10 bytes=1 hex=00 alloc:@made<@asked call:@LINE+1
    free(name);
    return 0;
}
