// The error path frees what the normal path frees as well.
#include <stdlib.h>

#include "lib/hide.h"

NOINLINE static int parse(const char *text)
{
    char *copy = hide((char *)malloc(100)); // @made
    int bad = text[0] != '{';
    if (bad) {
        free(copy); // @first
#ifdef FIXED
        return -1;
#endif
    }
    copy = hide(copy);
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=100 alloc:@made<@asked free:@first<@asked call:@LINE+1<@asked
    free(copy);
    done();
    return bad ? -1 : 0;
}

int main(void)
{
    return parse("[1, 2]") != -1; // @asked
}
