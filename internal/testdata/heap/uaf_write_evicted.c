// A timer writes its result into a job that was given back. Much later the
// memory is wanted again, and its bytes are examined.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct job {
    char *command;
    int status, signal;
    char state[24];
};

NOINLINE static void finish(struct job *j)
{
    j->status = 0x7f7f7f7f;
    done();
}

int main(void)
{
    struct job *j = hide((struct job *)calloc(1, sizeof *j)); // @made
#ifdef FIXED
    finish(j);
    free(j);
#else
    free(j); // @freed
    finish(hide(j));
#endif
    // WANT: use-after-free:@LINE+3
    // HEAP: use-after-free object=40 offset=8 bytes=4 hex=7f7f7f7f alloc:@made free:@freed call:@LINE+2
    for (int i = 0; i < 300000; i++)
        free(hide(malloc(40)));
    return 0;
}
