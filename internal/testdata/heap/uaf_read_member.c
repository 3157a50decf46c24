// A connection outlives its settings, which are asked for a limit.
#include <stdlib.h>

#include "lib/hide.h"

struct limits {
    char names[64];
    int most;
};

struct settings {
    char host[64];
    struct limits *limits;
};

NOINLINE static struct settings *load(struct limits *l)
{
    struct settings *s = hide((struct settings *)calloc(1, sizeof *s)); // @made
    s->limits = l;
    return s;
}

NOINLINE static int most(const struct settings *s)
{
    // WANT: use-after-free read:@LINE+1
    return s->limits->most;
}

int main(void)
{
    static struct limits l = {"", 5};
    struct settings *s = load(&l);
#ifdef FIXED
    int n = most(s);
    free(s);
#else
    free(s); // @freed
    // HEAP: use-after-free object=72 alloc:@made free:@freed
    int n = most(hide(s));
#endif
    return n != 5;
}
