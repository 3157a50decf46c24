// read(2) is told the size of the pipe's block, not that of the buffer.
// The slot ends 8 bytes past the buffer: at least so many were overwritten.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/hide.h"

#ifdef FIXED
#define AT_MOST 1000
#else
#define AT_MOST 1024
#endif

int main(void)
{
    int ends[2];
    static char block[1024];
    memset(block, 'r', sizeof block);
    if (pipe(ends) || write(ends[1], block, sizeof block) != sizeof block)
        return 2;
    char *buffer = hide((char *)malloc(1000)); // @made
    ssize_t n = read(ends[0], buffer, AT_MOST);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=1000 offset=1000 bytes=8 text=rrrrrrrr reaches alloc:@made call:@LINE+1
    free(buffer);
    return n < 1000;
}
