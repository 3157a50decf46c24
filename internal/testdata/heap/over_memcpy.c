// A packet says itself how long it is, and the copy believes it.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { LIMIT = 100 };

struct packet {
    unsigned short length;
    char body[LIMIT + 28];
};

NOINLINE static char *body_of(const struct packet *p)
{
    size_t n = p->length;
#ifdef FIXED
    if (n > LIMIT)
        n = LIMIT;
#endif
    char *copy = hide((char *)malloc(LIMIT)); // @made
    memcpy(copy, p->body, n);
    return copy;
}

int main(void)
{
    static struct packet p = {.length = LIMIT + 10};
    memset(p.body, 'p', sizeof p.body);
    char *body = body_of(&p);
    int bad = body[LIMIT - 1] != 'p';
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=100 offset=100 bytes=10 text=pppppppppp alloc:@made call:@LINE+1
    free(body);
    return bad;
}
