// Memory from an arena of the program's own, made with mmap(2), goes to free.
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/hide.h"

static char *arena;
static size_t used;

NOINLINE static void *take(size_t n)
{
    void *p = arena + used;
    used += (n + 15) & ~(size_t)15;
    return p;
}

int main(void)
{
    arena = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return 2;
    take(100);
    char *text = hide((char *)take(50));
    text[0] = 'a';
#ifndef FIXED
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free says=allocator call:@LINE+1
    free(text);
#endif
    return text[0] != 'a';
}
