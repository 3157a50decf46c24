// A title of 40 letters runs over the next shelf, whose pointer is followed:
// the pointer is text, and the text's object is named.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct shelf {
    int *books;
    char name[16];
};

static int books = 12;

NOINLINE static struct shelf *make(void)
{
    struct shelf *s = hide((struct shelf *)malloc(sizeof *s)); // @made
    s->books = &books;
    return s;
}

NOINLINE static int count(const struct shelf *s)
{
    // WANT: non-canonical-pointer read:@LINE+1
    return *s->books;
}

int main(void)
{
    struct shelf *first = make(); // @first
    struct shelf *second = make(); // @second
#ifdef FIXED
    memset(first->name, 'T', sizeof first->name);
#else
    // HEAP: heap-overflow object=24 offset=24 bytes=8 text=TTTTTTTT reaches beyond=24 alloc:@made<@first
    // HEAP: heap-object object=24 at=0 alloc:@made<@second
    memset(hide(&first->name[0]), 'T', 16 + 8 + sizeof *second);
#endif
    int n = count(second);
    free(first);
    free(second);
    return n != 12;
}
