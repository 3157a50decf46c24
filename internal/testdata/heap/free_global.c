// A default that was never allocated goes the way of the configured value.
#include <stdlib.h>

#include "lib/hide.h"

static char default_name[16] = "localhost";

struct config {
    char *name;
};

NOINLINE static void destroy(struct config *c)
{
#ifdef FIXED
    if (c->name != default_name)
#endif
        // WANT: invalid-free:@LINE+2
        // HEAP: invalid-free says=global call:@LINE+1
        free(c->name);
    done();
}

int main(void)
{
    struct config c = {hide(&default_name[0])};
    destroy(&c);
    return 0;
}
