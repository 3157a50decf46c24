// A freed record's name is freed again through the record: the pointer given
// to free is the record's fill, which tells whose it was.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct record {
    char *name;
    int age;
};

NOINLINE static struct record *make(const char *name)
{
    struct record *r = hide((struct record *)malloc(sizeof *r)); // @made
    r->name = hide(strdup(name));
    r->age = 1;
    return r;
}

NOINLINE static void destroy(struct record *r)
{
#ifdef FIXED
    free(r->name);
    free(r);
#else
    free(r); // @freed
    r = hide(r);
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free object=16 alloc:@made<@asked free:@freed call:@LINE+1
    free(r->name);
#endif
    done();
}

int main(void)
{
    struct record *r = make("ada"); // @asked
    destroy(r);
    return 0;
}
