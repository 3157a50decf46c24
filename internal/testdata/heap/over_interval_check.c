// A server that never frees the damaged title: with check_interval_ms it is
// found while it runs, by an allocation for which more memory is fetched.
// OPTIONS: check_interval_ms=1
#include <stdlib.h>
#include <time.h>

#include "lib/hide.h"

static char *volatile title;
static void *pages[2000];

NOINLINE static void serve(void)
{
    const struct timespec pause = {0, 30000000}; // several ticks of the coarse clock
    nanosleep(&pause, NULL);
    for (int i = 0; i < 2000; i++)
        pages[i] = hide(malloc(3000)); // @served
    done();
}

int main(void)
{
    title = hide((char *)malloc(50)); // @made
#ifdef FIXED
    title[49] = 'x';
#else
    title[50] = 'x';
#endif
    // WANT: heap-overflow:@served
    // HEAP: heap-overflow object=50 offset=50 bytes=1 text=x alloc:@made call:nowhere(main)
    serve();
    return 0;
}
