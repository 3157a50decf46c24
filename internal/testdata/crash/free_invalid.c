// The middle of a block is given back.
#include <stdlib.h>

static char *volatile block;

__attribute__((noinline, noipa)) static void release(void *p)
{
    // WANT: heap-corruption:@LINE+1
    free(p);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    block = malloc(100);
#ifdef FIXED
    release(block);
#else
    release(block + 8);
#endif
    return 0;
}
