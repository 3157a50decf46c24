// The buffer grew to 40 bytes, the copy of its capacity says 48. The next
// growth finds it.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

#ifdef FIXED
#define CAPACITY 40
#else
#define CAPACITY 48
#endif

int main(void)
{
    char *line = hide((char *)malloc(16));
    strcpy(line, "0123456789");
    line = hide((char *)realloc(line, 40)); // @grown
    memset(line + 10, '=', CAPACITY - 10);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=40 offset=40 bytes=8 text======== reaches alloc:@grown call:@LINE+1
    line = hide((char *)realloc(line, 5000));
    int bad = line[39] != '=';
    free(line);
    return bad;
}
