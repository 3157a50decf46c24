// Damage that had nothing to do with it: the program dies of a null pointer,
// and the overrun name is a finding of its own.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct door {
    char name[32];
    int *volatile open;
};

static int yes = 1;

int main(void)
{
    struct door *d = hide((struct door *)calloc(1, sizeof *d)); // @door
    char *label = hide((char *)malloc(12)); // @label
#ifdef FIXED
    memcpy(label, "front door", 11);
    d->open = &yes;
#else
    // HEAP: heap-overflow object=12 offset=12 bytes=3 hex=6f7200 alloc:@label
    // HEAP: heap-object object=40 at=0 alloc:@door optional
    memcpy(label, "the front door", 15);
#endif
    strcpy(d->name, "x");
    // WANT: null-pointer read:@LINE+1
    int bad = *d->open != 1;
    free(label);
    free(d);
    return bad || !yes;
}
