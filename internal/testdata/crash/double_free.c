// Two owners of one block, both give it back.
#include <stdlib.h>

static void *volatile block;

__attribute__((noinline, noipa)) static void release(void *p)
{
    // WANT: heap-corruption:@LINE+1
    free(p);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    block = malloc(100);
    release(block);
#ifndef FIXED
    release(block);
#endif
    return 0;
}
