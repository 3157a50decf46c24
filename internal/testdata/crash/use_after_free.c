// A list's element is used after it was freed: its link is malloc's by now.
// VARIANTS: O0 O2 O2-nofp clang-O2
#include <stdlib.h>
#include <string.h>

struct connection {
    struct connection *next;
    char *host;
    int number;
};

static struct connection *pool;

static void drop(struct connection *c)
{
#ifndef FIXED
    free(c);
#endif
}

__attribute__((noinline, noipa)) static int next_number(struct connection *c)
{
    // WANT: wild-pointer read:@LINE+1
    return c->next->number;
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        struct connection *c = calloc(1, sizeof *c);
        c->next = pool;
        c->number = i;
        pool = c;
    }
    drop(pool);
    return next_number(pool) != 1;
}
