// A cache's page is touched after its free; when more was freed than is kept,
// the oldest is examined and freed.
#include <stdlib.h>

#include "lib/hide.h"

enum { PAGES = 5000 };

struct page {
    long key, hits;
    char text[984];
};

static struct page *pages[PAGES];

NOINLINE static void touch(struct page *p)
{
    p->hits = 0x7c7c7c7c7c7c7c7c;
    done();
}

NOINLINE static void flush(void)
{
    for (int i = 1; i < PAGES; i++)
        free(pages[i]); // @flushed
    done();
}

int main(void)
{
    for (int i = 0; i < PAGES; i++)
        pages[i] = hide((struct page *)calloc(1, sizeof *pages[i])); // @made
#ifdef FIXED
    touch(pages[0]);
    free(pages[0]);
#else
    free(pages[0]); // @freed
    touch(hide(pages[0]));
#endif
    // WANT: use-after-free:@flushed
    // HEAP: use-after-free object=1000 offset=8 bytes=8 text=|||||||| alloc:@made free:@freed call:@flushed<@LINE+1
    flush();
    return 0;
}
