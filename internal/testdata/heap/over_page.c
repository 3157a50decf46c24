// A full page was read, and its end is marked after it.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { PAGE = 4096 };

#ifdef FIXED
#define BUFFER (PAGE + 1)
#else
#define BUFFER PAGE
#endif

NOINLINE static size_t fill(char *buffer)
{
    memset(buffer, 'x', PAGE);
    return PAGE;
}

static void *load(void *unused)
{
    char *buffer = hide((char *)malloc(BUFFER)); // @made
    buffer[fill(buffer)] = '\0';
    done();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=4096 offset=4096 bytes=1 hex=00 alloc:@made(load) call:@LINE+1(load)
    free(buffer);
    return unused;
}

int main(void)
{
    pthread_t loader;
    pthread_create(&loader, NULL, load, NULL);
    return pthread_join(loader, NULL);
}
