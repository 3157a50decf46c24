// The request was cut down to its first half; a trailer still goes to its end.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct request {
    char *text;
    size_t length;
};

NOINLINE static void cut(struct request *r, size_t n)
{
    r->text = hide((char *)realloc(r->text, n)); // @cut
#ifdef FIXED
    r->length = n - 8;
#endif
}

NOINLINE static void finish(struct request *r)
{
    memcpy(r->text + r->length, "\r\n\r\n", 4);
}

int main(void)
{
    struct request r = {hide((char *)malloc(128)), 100};
    memset(r.text, 'q', 128);
    cut(&r, 100);
    finish(&r);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=100 offset=100 bytes=4 hex=0d0a0d0a alloc:@cut call:@LINE+1
    free(r.text);
    return 0;
}
