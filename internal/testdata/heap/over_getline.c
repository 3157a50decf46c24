// getline(3) made a buffer; the program pads it to 128 columns.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define COLUMNS(room) (room)
#else
#define COLUMNS(room) 128
#endif

int main(void)
{
    static char text[] = "one line\n";
    FILE *f = fmemopen(text, strlen(text), "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n = getline(&line, &room, f); // @made
    if (n != 9 || room != 120) // what glibc starts with (iogetdelim.c)
        return 2;
    line = hide(line);
    memset(line + n, ' ', COLUMNS(room) - n);
    fclose(f);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=120 offset=120 bytes=8 hex=2020202020202020 reaches alloc:@made call:@LINE+1
    free(line);
    return 0;
}
