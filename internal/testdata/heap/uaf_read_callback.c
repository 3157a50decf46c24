// The callback of a request that was cancelled is called.
#include <stdlib.h>

#include "lib/hide.h"

struct request {
    int id;
    void *user;
    int (*complete)(void *user);
};

static int complete(void *user)
{
    return user == NULL;
}

NOINLINE static int deliver(struct request *r)
{
    // WANT: use-after-free execute:@LINE+1
    int result = r->complete(r->user);
    done();
    return result;
}

int main(void)
{
    struct request *r = hide((struct request *)malloc(sizeof *r)); // @made
    *r = (struct request){1, r, complete};
#ifdef FIXED
    int bad = deliver(r);
    free(r);
#else
    free(r); // @freed
    // HEAP: use-after-free object=24 alloc:@made free:@freed
    int bad = deliver(hide(r));
#endif
    return bad;
}
