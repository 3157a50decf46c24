// Allocated in one thread, overrun in a second, freed by a third.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { ROOM = 48 };

#ifdef FIXED
#define GREETING "hello"
#else
#define GREETING "hello, and welcome to the machine of many threads"
#endif

static char *message;

static void *producer(void *unused)
{
    message = hide((char *)malloc(ROOM)); // @made
    return unused;
}

static void *writer(void *unused)
{
    strcpy(hide(message), GREETING);
    return unused;
}

static void *consumer(void *unused)
{
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=48 offset=48 bytes=2 hex=7300 alloc:@made(ended) call:@LINE+1(consumer)
    free(message);
    return unused;
}

int main(void)
{
    void *(*const work[])(void *) = {producer, writer, consumer};
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        pthread_create(&t, NULL, work[i], NULL);
        pthread_join(t, NULL);
    }
    return 0;
}
