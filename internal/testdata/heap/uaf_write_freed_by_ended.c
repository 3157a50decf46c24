// A worker frees the result and ends; the main thread still adds to it.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#include "lib/hide.h"

struct result {
    long count;
    long sum;
};

static struct result *result;

static void *worker(void *unused)
{
    result->count = 1;
#ifndef FIXED
    free(result); // @freed
#endif
    return unused;
}

int main(void)
{
    pthread_t t;
    result = hide((struct result *)calloc(1, sizeof *result)); // @made
    pthread_create(&t, NULL, worker, NULL);
    pthread_join(t, NULL);
    hide(result)->sum = 0x3939393939393939;
    done();
#ifdef FIXED
    free(result);
#endif
    // WANT: use-after-free:@LINE+2
    // HEAP: use-after-free object=16 offset=8 bytes=8 text=99999999 alloc:@made(main) free:@freed(ended) call:nowhere(main)
    exit(0);
}
