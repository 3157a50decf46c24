// One of sixteen workers, and only that one, writes a word too many.
// FLAGS: -pthread
#include <pthread.h>
#include <stdlib.h>

#include "lib/hide.h"

enum { WORKERS = 16, WORDS = 30 };

static pthread_barrier_t all;

NOINLINE static void fill(long *words, int n)
{
    for (int i = 0; i < n; i++)
        words[i] = 0x7777777777777777;
}

static void *clumsy(void *unused)
{
    long *words = hide((long *)malloc(WORDS * sizeof *words)); // @made
#ifdef FIXED
    fill(words, WORDS);
#else
    fill(words, WORDS + 1);
#endif
    pthread_barrier_wait(&all);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=240 offset=240 bytes=8 text=wwwwwwww alloc:@made(clumsy) call:@LINE+1(clumsy)
    free(words);
    return unused;
}

static void *careful(void *unused)
{
    long *words = hide((long *)malloc(WORDS * sizeof *words));
    fill(words, WORDS);
    pthread_barrier_wait(&all);
    free(words);
    return unused;
}

int main(void)
{
    pthread_t workers[WORKERS];
    pthread_barrier_init(&all, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, i == 11 ? clumsy : careful, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
