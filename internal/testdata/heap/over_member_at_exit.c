// A header is allocated, a whole message is filled in, and no code frees it:
// only the check at the end sees it.
#include <stdlib.h>

#include "lib/hide.h"

struct header {
    long type, length, sequence;
};

struct message {
    struct header header;
    void (*handler)(void);
};

#ifdef FIXED
#define SIZE sizeof(struct message)
#else
#define SIZE sizeof(struct header)
#endif

static struct message *kept;

static void ignore(void) {}

NOINLINE static struct message *receive(long type)
{
    struct message *m = hide((struct message *)malloc(SIZE)); // @made
    m->header.type = type;
    m->handler = ignore;
    done();
    return m;
}

int main(void)
{
    // WANT: heap-overflow:nowhere
    // HEAP: heap-overflow object=24 offset=24 bytes=8 reaches alloc:@made<@LINE+1 call:nowhere
    kept = receive(7);
    return kept->header.type != 7;
}
