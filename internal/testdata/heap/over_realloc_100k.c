// A log buffer grows by half, and the writer continues with its doubled size.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct log {
    char *text;
    size_t used, room;
};

NOINLINE static void grow(struct log *l)
{
    size_t more = 100000;
    l->text = hide((char *)realloc(l->text, more)); // @grown
#ifdef FIXED
    l->room = more;
#else
    l->room = more + 16;
#endif
}

NOINLINE static void fill(struct log *l)
{
    memset(l->text + l->used, '+', l->room - l->used);
    l->used = l->room;
}

int main(void)
{
    struct log l = {hide((char *)malloc(66000)), 0, 66000};
    fill(&l);
    grow(&l); // @asked
    fill(&l);
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=100000 offset=100000 bytes=16 text=++++++++ alloc:@grown<@asked call:@LINE+1
    free(l.text);
    return 0;
}
