// A name is measured whose record is gone: the crash is in strlen.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct record {
    int number;
    const char *name;
};

NOINLINE static size_t width(const struct record *r)
{
    // WANT: use-after-free read:@LINE+1
    size_t n = strlen(r->name);
    done();
    return n;
}

int main(void)
{
    struct record *r = hide((struct record *)malloc(sizeof *r)); // @made
    *r = (struct record){7, "seven"};
#ifdef FIXED
    size_t n = width(r);
    free(r);
#else
    free(r); // @freed
    // HEAP: use-after-free object=16 alloc:@made free:@freed
    size_t n = width(hide(r));
#endif
    return n != 5;
}
