// The checksum at the end of a freed block; just inside the filled part.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

struct block {
    char data[120];
    uint32_t checksum;
    char more[76];
};

NOINLINE static void seal(struct block *b)
{
    b->checksum = 0x50515253;
    done();
}

int main(void)
{
    struct block *b = hide((struct block *)calloc(1, sizeof *b)); // @made
#ifdef FIXED
    seal(b);
    free(b);
#else
    free(b); // @freed
    seal(hide(b));
#endif
    // WANT: use-after-free:@LINE+2
    // HEAP: use-after-free object=200 offset=120 bytes=4 text=SRQP alloc:@made free:@freed call:nowhere
    exit(0);
}
