// Two workers, one after the other, free the buffer that both were given.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#include "lib/hide.h"

static char *buffer;

static void *first(void *unused)
{
    buffer = hide((char *)malloc(5000)); // @made
    free(buffer); // @freed
    return unused;
}

static void *second(void *unused)
{
#ifndef FIXED
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=5000 alloc:@made(ended) free:@freed(ended) call:@LINE+1(second)
    free(hide(buffer));
#endif
    return unused;
}

int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, first, NULL);
    pthread_join(t, NULL);
    pthread_create(&t, NULL, second, NULL);
    return pthread_join(t, NULL);
}
