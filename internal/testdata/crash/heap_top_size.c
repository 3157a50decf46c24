// A write past the last block destroys the size of the heap's top chunk.
#include <stdlib.h>
#include <string.h>

static char *volatile block;
static volatile int length = 24;

__attribute__((noinline, noipa)) static void *grow(size_t n)
{
    // WANT: heap-corruption:@LINE+1
    void *p = malloc(n);
    __asm__ volatile("" ::: "memory");
    return p;
}

int main(void)
{
    block = malloc(24);
#ifndef FIXED
    length = 64;
#endif
    memset(block, 0xee, length);
    return grow(5000) == NULL;
}
